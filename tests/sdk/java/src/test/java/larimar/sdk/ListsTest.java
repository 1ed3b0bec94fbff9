package larimar.sdk; class ListsTest {}
