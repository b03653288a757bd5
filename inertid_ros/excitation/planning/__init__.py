"""Planning: the search for the motion that tells most within its constraints."""
