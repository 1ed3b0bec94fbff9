package larimar.sdk; class PagesTest {}
