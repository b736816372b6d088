"""Learn, choose, calibrate, pack: from labelled features to one artifact."""
