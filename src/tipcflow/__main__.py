"""`python -m tipcflow`: the command line where its script is not on the PATH."""

from tipcflow.entry import main

if __name__ == "__main__":
    main()
