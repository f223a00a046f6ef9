"""What a case is worked in and graded in: laid out, provisioned, snapshotted, built anew."""
