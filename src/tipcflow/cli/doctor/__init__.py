"""`tipcflow doctor`: finds what is wrong with an installation and says how to fix it."""
