"""Every table and figure of the MDPFuzz paper again, with our models, beside what the paper says."""
