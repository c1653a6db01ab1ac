"""`tipcflow plan`: what a run would do, as table, diff, page or list of expected evidence."""
