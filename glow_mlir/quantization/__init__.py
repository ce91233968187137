"""From numbers that were seen to codes: histograms, profiles, calibration, schemas."""
