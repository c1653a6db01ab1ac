"""Plans by what the file says: steps, legs, containers, what is feasible."""
