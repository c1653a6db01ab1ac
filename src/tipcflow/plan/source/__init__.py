"""What a params file says: groups, options, variants, legs."""
