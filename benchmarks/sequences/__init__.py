"""Quality of sequences: `python -m benchmarks.sequences [--data FOLDER] [--seeds 1] [--quick]` (make bench-sequences).

    panel       credit default, 24,000 clients × 6 months × 3 (status, bill, payment), unit client, three parties; AUROC
                of logistic regression and gradient boosting on 6,000 other clients, and how bills move
    simulated   20,000 entities × 24 steps, an entity mean and autocorrelated deviations, unit entity, three parties
    energy      one house, every ten minutes, 27 attributes, unit step, one party; a predictor of the next step that was
    stock       trained on synthetic series, on real test blocks, beside persistence and a walk that has seen no data

    fedstdg     the panel by the recurrent autoencoder, by DP-SGD and by votes (SubMDS); `mae` is the error of a
                predictor of the next month on other clients, beside persistence and a walk that has seen no data

δ = 1e-5. Bounds are declared (round numbers around what occurs), train and test blocks of series are interleaved with a
gap of a sequence's length. FOLDER holds credit-default/credit-default.csv.gz and so on.
The last line is one JSON object.
"""
