#!/bin/bash
# Images and labels of ICDAR 2015 in PaddleOCR's folders. There are no pretrained weights: the training begins from a seed.
wget -nc -P ./train_data/ https://paddleocr.bj.bcebos.com/dygraph_v2.0/test/icdar2015_lite.tar --no-check-certificate
cd ./train_data/ && tar xf icdar2015_lite.tar
rm -rf icdar2015 && ln -s ./icdar2015_lite ./icdar2015
