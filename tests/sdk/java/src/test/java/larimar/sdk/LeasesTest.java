package larimar.sdk; class LeasesTest {}
