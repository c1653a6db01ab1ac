"""Did the run do what was planned? Steps, world size, training, engine, environment, confirm run."""
