"""The search for a motion that excites well; :func:`.planner.plan_excitation` is the entry point."""
