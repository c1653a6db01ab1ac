import datetime
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import paddle
import paddle.distributed as dist
from ppocr.data import Labelled, shares
from ppocr.log import get_logger
from ppocr.network import Detector, losses
from tools.program import configuration, evaluate, set_device


def main():
    config = configuration()
    settings = config["Global"]
    set_device(config)
    folder = settings["save_model_dir"]
    os.makedirs(folder, exist_ok=True)
    dist.init_parallel_env()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logger = get_logger(os.path.join(folder, "train.log") if rank == 0 else "")
    paddle.seed(settings["seed"])
    network = Detector(config["Architecture"]["width"])
    parallel = paddle.DataParallel(network) if ranks > 1 else network
    logger.info(f"train with paddle {paddle.__version__} and device {paddle.get_device()}")
    train(config, logger, network, parallel, rank, ranks)


def train(config, logger, network, parallel, rank, ranks):
    settings = config["Global"]
    data, held_out = Labelled(config["Train"]["dataset"]), Labelled(config["Eval"]["dataset"])
    rate = config["Optimizer"]["learning_rate"]
    optimizer = paddle.optimizer.Adam(rate, parameters=network.parameters())
    epochs, every = settings["epoch_num"], settings["print_batch_step"]
    batch_size, step, best = config["Train"]["loader"]["batch_size_per_card"], 0, {"hmean": 0}
    first, between = settings["eval_batch_step"]
    reader_cost = batch_cost = samples = batches = 0
    for epoch in range(1, epochs + 1):
        for indexes in shares(len(data), batch_size, epoch, rank, ranks):
            started = time.time()
            images, text, border = map(paddle.to_tensor, data.batch(indexes))
            reader_cost += time.time() - started
            parts = losses(parallel(images), text, border)
            parts["loss"].backward()
            optimizer.step()
            optimizer.clear_grad()
            values = {name: float(value) for name, value in parts.items()}
            batch_cost += time.time() - started
            samples, batches, step = samples + len(indexes), batches + 1, step + 1
            if rank == 0 and step % every == 0:
                left = datetime.timedelta(seconds=int(batch_cost / batches * (epochs - epoch)))
                shown = ", ".join(f"{name}: {value:.6f}" for name, value in {"lr": rate, **values}.items())
                logger.info(
                    f"epoch: [{epoch}/{epochs}], global_step: {step}, {shown}, avg_reader_cost: {reader_cost / every:.5f} s, "
                    f"avg_batch_cost: {batch_cost / every:.5f} s, avg_samples: {samples / every}, "
                    f"ips: {samples / batch_cost:.5f} samples/s, eta: {left}"
                )
                reader_cost = batch_cost = samples = batches = 0
            if rank == 0 and step > first and (step - first) % between == 0:
                best = measured(network, held_out, epoch, best, settings["save_model_dir"], logger)
    if rank == 0:
        save(network, settings["save_model_dir"], "latest", logger)
        logger.info("best metric, " + ", ".join(f"{name}: {value}" for name, value in best.items()))


def measured(network, held_out, epoch, best, folder, logger):
    """The best evaluation so far; the weights are saved if it is the newest."""
    metric = evaluate(network, held_out)
    logger.info("cur metric, " + ", ".join(f"{name}: {value}" for name, value in metric.items()))
    if metric["hmean"] < best["hmean"]:
        return best
    save(network, folder, "best_accuracy", logger)
    return {**metric, "best_epoch": epoch}


def save(network, folder, name, logger):
    paddle.save(network.state_dict(), os.path.join(folder, f"{name}.pdparams"))
    logger.info(f"save model in {os.path.join(folder, name)}")


if __name__ == "__main__":
    main()
