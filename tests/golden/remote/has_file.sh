test -f '/data/it'"'"'s here'
