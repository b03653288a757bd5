"""Search for a well-exciting motion; :func:`.planner.plan_excitation` is the entry point."""
