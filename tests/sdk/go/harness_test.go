// Package sdk holds the scenarios of ../scenarios.toml written against the official Go clients: aztables, azqueue
// and azblob.
//
// This file is the harness: it runs one subtest per scenario id, in the list's order, and appends one JSON
// line per id to LARIMAR_RESULTS. An id without a test, or a test without an id, is a failure. What the
// scenarios share (clients, entities, checks) is in support_test.go, and for queues and blobs in their own
// support files; the scenarios are grouped by topic.
package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// tests names the test of every id.
type tests = map[string]func(*scenario)

// services are the services with a client, the module that go.mod names for it, and their tests.
var services = map[string]struct {
	module string
	tests  tests
}{
	"table": {"/sdk/data/aztables v", tableTests},
	"queue": {"/sdk/storage/azqueue/v2 v", queueTests},
	"blob":  {"/sdk/storage/azblob v", blobTests},
}

var tableTests = tests{
	"development-connection-string": developmentConnectionString,
	"table-lifecycle":               tableLifecycle,
	"table-list":                    tableList,

	"entity-types":      entityTypes,
	"int64-extremes":    int64Extremes,
	"double-specials":   doubleSpecials,
	"datetime-extremes": datetimeExtremes,
	"strings":           stringValues,
	"large-values":      largeValues,

	"insert-conflict":   insertConflict,
	"etag-conflict":     etagConflict,
	"merge-and-replace": mergeAndReplace,
	"upserts":           upserts,

	"filter-operators": filterOperators,
	"filter-literals":  filterLiterals,
	"filter-keys":      filterKeys,
	"filter-errors":    filterErrors,
	"select":           selectProperties,
	"paging":           paging,
	"log-tail":         logTail,

	"transaction":         transaction,
	"transaction-failure": transactionFailure,
	"transaction-rules":   transactionRules,

	"special-keys":   specialKeys,
	"forbidden-keys": forbiddenKeys,

	"bad-signature": badSignature,
	"table-sas":     tableSAS,
	"sas-key-range": sasKeyRange,
	"account-sas":   accountSAS,
	"acl":           accessPolicies,
	"stored-policy": storedPolicy,

	"service-properties": serviceProperties,
	"service-stats":      serviceStats,
}

const scenarioTimeout = 5 * time.Minute

func TestScenarios(t *testing.T) {
	requireEnvironment(t)
	list := listedScenarios(t)
	for _, listed := range list {
		t.Run(listed.id, func(t *testing.T) {
			test, found := services[listed.service].tests[listed.id]
			if !found {
				report(t, listed, "failed", "this suite has no test for it")
				t.Fatalf("no test for scenario %q", listed.id)
			}
			runScenario(t, listed, test)
		})
	}
	for service := range services {
		for id := range services[service].tests {
			if !slices.Contains(list, listedScenario{id, service}) {
				t.Errorf("scenario %q is not in scenarios.toml", id)
			}
		}
	}
}

// scenario is a running test that remembers what it complained about, for the results file.
type scenario struct {
	*testing.T
	ctx      context.Context
	problems []string
}

func (s *scenario) Errorf(format string, args ...any) {
	s.Helper()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
	s.T.Errorf(format, args...)
}

func (s *scenario) Fatalf(format string, args ...any) {
	s.Helper()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
	s.T.Fatalf(format, args...)
}

func (s *scenario) Skipf(format string, args ...any) {
	s.Helper()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
	s.T.Skipf(format, args...)
}

func runScenario(t *testing.T, listed listedScenario, test func(*scenario)) {
	ctx, cancel := context.WithTimeout(context.Background(), scenarioTimeout)
	s := &scenario{T: t, ctx: ctx}
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			s.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
		outcome := "passed"
		if t.Failed() {
			outcome = "failed"
		} else if t.Skipped() {
			outcome = "skipped"
		}
		report(t, listed, outcome, strings.Join(s.problems, "\n"))
	}()
	test(s)
}

func requireEnvironment(t *testing.T) {
	for _, name := range []string{"LARIMAR_TABLE_ENDPOINT", "LARIMAR_QUEUE_ENDPOINT", "LARIMAR_BLOB_ENDPOINT", "LARIMAR_ACCOUNT", "LARIMAR_KEY"} {
		if os.Getenv(name) == "" {
			t.Fatalf("%s is not set: start a server and name it, or run `cargo xtask sdk go`", name)
		}
	}
}

type listedScenario struct{ id, service string }

// listedScenarios reads the `id = "..."` lines of the shared list, and the `service = "..."` lines before them.
func listedScenarios(t *testing.T) []listedScenario {
	var list []listedScenario
	service := "table"
	for _, line := range fileLines(t, "../scenarios.toml") {
		if line == "[[scenario]]" {
			service = "table"
		} else if value, found := strings.CutPrefix(line, "service = "); found {
			service = strings.Trim(value, `"`)
		} else if value, found := strings.CutPrefix(line, "id = "); found {
			list = append(list, listedScenario{strings.Trim(value, `"`), service})
		}
	}
	if len(list) == 0 {
		t.Fatal("scenarios.toml names no scenario")
	}
	return list
}

// report appends one line to the results file, if there is one.
func report(t *testing.T, listed listedScenario, outcome, detail string) {
	path := os.Getenv("LARIMAR_RESULTS")
	if path == "" {
		return
	}
	line, err := json.Marshal(struct {
		SDK      string `json:"sdk"`
		Version  string `json:"version"`
		Scenario string `json:"scenario"`
		Outcome  string `json:"outcome"`
		Detail   string `json:"detail"`
	}{"go", sdkVersion(t, services[listed.service].module), listed.id, outcome, detail})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// sdkVersion is the version of a module that go.mod asks for.
func sdkVersion(t *testing.T, module string) string {
	for _, line := range fileLines(t, "go.mod") {
		if _, version, found := strings.Cut(line, module); found {
			return version
		}
	}
	t.Fatalf("go.mod does not name %s", module)
	return ""
}

func fileLines(t *testing.T, path string) []string {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []string
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		lines = append(lines, strings.TrimSpace(scanner.Text()))
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
