"""An audit that could fail: what a mechanism really does, held against what it says it costs.

    tape            luck that is fixed and written down, stream by stream, and every value that noise is added to
    replay          the same run on neighbouring tables: what differs, but for values under noise, and by how much?
    whitebox        the same release many thousand times: how well does the strongest attacker tell them apart?
    bounds          error rates of an attack to a lower bound of ε, with confidence
    canaries, game  membership inference end to end, with shadow runs and a positive control

Nothing here is needed to run a plan; everything here looks at the code that runs it.
"""
