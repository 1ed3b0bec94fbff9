package larimar.sdk; class TagsTest {}
