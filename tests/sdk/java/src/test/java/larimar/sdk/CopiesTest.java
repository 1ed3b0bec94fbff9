package larimar.sdk; class CopiesTest {}
