"""Is a synthetic table faithful, useful and safe? One file per question, one registry for what each figure means."""
