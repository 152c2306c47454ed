"""What every family of averaged weights shares. A family writes its settings, its networks, one loss a row, and how it
draws rows (`synth.neural.model`); the rounds, the noise, the asks and the fitting to released histograms are here."""
