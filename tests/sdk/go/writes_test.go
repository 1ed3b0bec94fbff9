// Writes: insert, replace, merge, the two upserts, delete, and their conditions.
package sdk

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func insertConflict(s *scenario) {
	table := s.newTable()
	s.add(table, s.edm("p", "r", props{"V": "first"}))
	before := s.get(table, "p", "r")

	_, err := table.AddEntity(s.ctx, s.edm("p", "r", props{"V": "second", "W": "more"}), nil)
	s.refused(err, 409, "EntityAlreadyExists", "second insert of a key")
	s.equal(s.get(table, "p", "r"), before, "the first entity stays as it was")
	s.add(table, s.edm("p", "R", props{"V": "keys have case"}))
	s.add(table, s.edm("P", "r", props{"V": "keys have case"}))

	_, err = table.GetEntity(s.ctx, "p", "missing", nil)
	s.refused(err, 404, "ResourceNotFound", "get of a missing entity")
	s.refused(second(s.update(table, s.edm("p", "missing", nil), aztables.UpdateModeReplace, "*")), 404, "ResourceNotFound", "replace of a missing entity")
	s.refused(second(s.update(table, s.edm("p", "missing", nil), aztables.UpdateModeMerge, "*")), 404, "ResourceNotFound", "merge of a missing entity")
	s.refused(second(table.DeleteEntity(s.ctx, "p", "missing", nil)), 404, "ResourceNotFound", "delete of a missing entity")

	absent := s.service().NewClient(s.tableName())
	_, err = absent.AddEntity(s.ctx, s.edm("p", "r", nil), nil)
	s.refused(err, 404, "TableNotFound", "insert into a missing table")
	_, err = absent.GetEntity(s.ctx, "p", "r", nil)
	s.refused(err, 404, "TableNotFound", "get from a missing table")
	s.refused(s.queryError(absent, "PartitionKey eq 'p'"), 404, "TableNotFound", "query of a missing table")
	_, err = absent.UpsertEntity(s.ctx, s.edm("p", "r", nil), nil)
	s.refused(err, 404, "TableNotFound", "upsert into a missing table")
	s.refused(second(absent.DeleteEntity(s.ctx, "p", "r", nil)), 404, "TableNotFound", "delete from a missing table")
}

func etagConflict(s *scenario) {
	table := s.newTable()
	write := func(mode aztables.UpdateMode, value int32, condition azcore.ETag) (azcore.ETag, error) {
		return s.update(table, s.edm("p", "r", props{"V": value}), mode, condition)
	}
	remove := func(condition azcore.ETag) error {
		return second(table.DeleteEntity(s.ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &condition}))
	}

	first := s.add(table, s.edm("p", "r", props{"V": int32(1)}))
	replaced, err := write(aztables.UpdateModeReplace, 2, first)
	s.must(err, "replace with the current etag")
	s.refused(second(write(aztables.UpdateModeReplace, 99, first)), 412, "UpdateConditionNotSatisfied", "replace with a stale etag")
	s.refused(second(write(aztables.UpdateModeMerge, 99, first)), 412, "UpdateConditionNotSatisfied", "merge with a stale etag")
	s.refused(remove(first), 412, "UpdateConditionNotSatisfied", "delete with a stale etag")
	s.equal(s.get(table, "p", "r").Properties["V"], int32(2), "value after refused writes")
	s.equal(s.get(table, "p", "r").ETag, string(replaced), "etag after refused writes")

	merged, err := write(aztables.UpdateModeMerge, 3, replaced)
	s.must(err, "merge with the current etag")
	forced, err := write(aztables.UpdateModeReplace, 4, "*")
	s.must(err, "replace with any etag")
	same, err := write(aztables.UpdateModeReplace, 4, "*")
	s.must(err, "replace with the same value")
	seen := map[azcore.ETag]bool{}
	for _, etag := range []azcore.ETag{first, replaced, merged, forced, same} {
		if seen[etag] || !etagShape.MatchString(string(etag)) {
			s.Errorf("etag %s is not new and well-formed", etag)
		}
		seen[etag] = true
	}
	s.refused(second(write(aztables.UpdateModeReplace, 99, "not an etag")), 400, "InvalidInput", "replace with a malformed etag")

	s.refused(remove(forced), 412, "UpdateConditionNotSatisfied", "delete with a stale etag")
	s.must(remove(same), "delete with the current etag")
	s.refused(second(table.GetEntity(s.ctx, "p", "r", nil)), 404, "ResourceNotFound", "get after the delete")
	s.refused(second(write(aztables.UpdateModeReplace, 5, same)), 404, "ResourceNotFound", "replace after the delete")
	s.refused(remove(same), 404, "ResourceNotFound", "delete after the delete")
}

func mergeAndReplace(s *scenario) {
	table := s.newTable()
	s.add(table, s.edm("p", "r", props{"A": "a", "B": int32(1), "C": true}))

	_, err := s.update(table, s.edm("p", "r", props{"B": "now text", "D": 2.5}), aztables.UpdateModeMerge, "*")
	s.must(err, "merge")
	s.equal(s.get(table, "p", "r").Properties, props{"A": "a", "B": "now text", "C": true, "D": 2.5}, "after a merge")

	_, err = s.update(table, s.edm("p", "r", props{"A": nil, "C": false}), aztables.UpdateModeMerge, "*")
	s.must(err, "merge with a null")
	s.equal(s.get(table, "p", "r").Properties, props{"A": "a", "B": "now text", "C": false, "D": 2.5}, "a null leaves the old value")

	_, err = s.update(table, s.edm("p", "r", props{"E": "only"}), aztables.UpdateModeReplace, "*")
	s.must(err, "replace")
	s.equal(s.get(table, "p", "r").Properties, props{"E": "only"}, "after a replace")

	_, err = s.update(table, s.edm("p", "r", nil), aztables.UpdateModeReplace, "*")
	s.must(err, "replace with nothing")
	s.equal(s.get(table, "p", "r").Properties, props{}, "after a replace with nothing")
}

func upserts(s *scenario) {
	table := s.newTable()
	for _, mode := range []aztables.UpdateMode{aztables.UpdateModeReplace, aztables.UpdateModeMerge} {
		row := string(mode)
		upsert := func(properties props) azcore.ETag {
			s.Helper()
			done, err := table.UpsertEntity(s.ctx, s.edm("p", row, properties), &aztables.UpsertEntityOptions{UpdateMode: mode})
			s.must(err, "upsert by "+row)
			s.equal(s.get(table, "p", row).ETag, string(done.ETag), "etag of an upsert by "+row)
			return done.ETag
		}
		inserted := upsert(props{"A": "a", "B": int32(1)})
		s.equal(s.get(table, "p", row).Properties, props{"A": "a", "B": int32(1)}, "absent entity, upsert by "+row)
		written := upsert(props{"B": int32(2), "C": "c"})
		want := props{"B": int32(2), "C": "c"}
		if mode == aztables.UpdateModeMerge {
			want["A"] = "a"
		}
		s.equal(s.get(table, "p", row).Properties, want, "present entity, upsert by "+row)
		if inserted == written {
			s.Errorf("upsert by %s did not change the etag", row)
		}
	}
	s.equal(s.rows(table, ""), []string{"merge", "replace"}, "two entities in all")
}

// update replaces or merges under a condition and gives the new etag.
func (s *scenario) update(table *aztables.Client, entity []byte, mode aztables.UpdateMode, condition azcore.ETag) (azcore.ETag, error) {
	done, err := table.UpdateEntity(s.ctx, entity, &aztables.UpdateEntityOptions{IfMatch: &condition, UpdateMode: mode})
	return done.ETag, err
}
