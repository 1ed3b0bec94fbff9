// Storage analytics: requests in logs, sums in metrics; and what the blob service refuses to do.
package sdk

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func blobOutOfScope(s *scenario) {
	client := s.newBlob("text", nil)
	etag := *s.properties(client).ETag
	version, err := client.WithVersionID("2020-01-01T00:00:00.0000000Z")
	s.must(err, "make a client of a version")
	for what, err := range map[string]error{
		"undelete":                     second(client.Undelete(s.ctx, nil)),
		"read a version":               s.read(version, nil),
		"clear an immutability policy": second(client.DeleteImmutabilityPolicy(s.ctx, nil)),
		"undelete a container":         second(s.blobService().RestoreContainer(s.ctx, lowerName(), "01D60F8BB59A4652", nil)),
	} {
		s.refused(err, 501, "NotImplemented", what)
	}
	s.refused(second(client.SetImmutabilityPolicy(s.ctx, farAhead, nil)), 400, "UnsupportedHeader", "set an immutability policy")
	s.refused(second(client.SetLegalHold(s.ctx, true, nil)), 400, "UnsupportedHeader", "set a legal hold")
	s.equal(*s.properties(client).ETag, etag, "ETag after the refusals")
	s.equal(s.text(client), "text", "content after the refusals")
}

// eventuallyWithin asks for longer than eventually does: a minute's metrics are written when the minute is over.
func (s *scenario) eventuallyWithin(limit time.Duration, what string, ask func() bool) {
	s.Helper()
	for until := time.Now().Add(limit); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if ask() {
			return
		}
	}
	s.Fatalf("%s: did not come true within %v", what, limit)
}

var (
	logField = regexp.MustCompile(`("[^"]*"|[^;]*);`)
	logName  = regexp.MustCompile(`^blob/\d{4}/\d\d/\d\d/\d\d00/\d{6}\.log$`)
	logTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$`)
)

// logged are the lines of all logs that are about an object, as fields.
func (s *scenario) logged(logs *container.Client, key string) [][]string {
	s.Helper()
	var lines [][]string
	for _, name := range s.listed(logs, &container.ListBlobsFlatOptions{Prefix: ptr("blob/")}) {
		for _, line := range strings.Split(s.text(logs.NewBlobClient(name)), "\n") {
			var fields []string
			for _, field := range logField.FindAllStringSubmatch(line+";", -1) {
				fields = append(fields, field[1])
			}
			if len(fields) == 30 && fields[12] == key {
				lines = append(lines, fields)
			}
		}
	}
	return lines
}

func analyticsLogs(s *scenario) {
	service := s.blobService()
	logging := func(on bool) *blobservice.SetPropertiesOptions {
		return &blobservice.SetPropertiesOptions{Logging: &blobservice.Logging{
			Version: ptr("1.0"), Read: &on, Write: &on, Delete: &on, RetentionPolicy: &blobservice.RetentionPolicy{Enabled: ptr(false)},
		}}
	}
	s.must(second(service.SetProperties(s.ctx, logging(true))), "switch logging on")
	client, name := s.newNamedContainer()
	written := s.putBlob(client, "logged", "12345", nil)
	s.text(written)
	s.must(second(written.Delete(s.ctx, nil)), "delete")
	s.must(second(service.SetProperties(s.ctx, logging(false))), "switch logging off")

	logs := service.NewContainerClient("$logs")
	var lines [][]string
	s.eventuallyWithin(time.Minute, "the lines of a blob", func() bool {
		lines = s.logged(logs, `"/`+account()+"/"+name+`/logged"`)
		return len(lines) >= 3
	})
	var told []string
	for _, fields := range lines {
		told = append(told, strings.Join(fields[2:5], " "))
		s.equal([]string{fields[0], fields[7], fields[8], fields[9], fields[10]}, []string{"1.0", "authenticated", account(), account(), "blob"}, "fields of a line")
		if !logTime.MatchString(fields[1]) || !strings.Contains(fields[27], "azsdk-go-azblob") {
			s.Errorf("time %s, agent %s", fields[1], fields[27])
		}
	}
	s.equal(told, []string{"PutBlob Success 201", "GetBlob Success 200", "DeleteBlob Success 202"}, "what is told")
	log := s.items(logs, &container.ListBlobsFlatOptions{Prefix: ptr("blob/"), Include: container.ListBlobsInclude{Metadata: true}})[0]
	// The client gives the names of metadata in lower case.
	version, start, end := word(log.Metadata["logversion"]), word(log.Metadata["starttime"]), word(log.Metadata["endtime"])
	if !logName.MatchString(*log.Name) || version != "1.0" || start == "" || start > end {
		s.Errorf("the log %s, version %q, of %q to %q", *log.Name, version, start, end)
	}
}

func analyticsMetrics(s *scenario) {
	service := s.blobService()
	metrics := func(on bool) *blobservice.SetPropertiesOptions {
		both := &blobservice.Metrics{Version: ptr("1.0"), Enabled: &on, RetentionPolicy: &blobservice.RetentionPolicy{Enabled: ptr(false)}}
		if on {
			both.IncludeAPIs = &on
		}
		return &blobservice.SetPropertiesOptions{HourMetrics: both, MinuteMetrics: both}
	}
	s.must(second(service.SetProperties(s.ctx, metrics(true))), "switch metrics on")
	defer func() { s.must(second(service.SetProperties(s.ctx, metrics(false))), "switch metrics off") }()
	client := s.newContainer()
	began := time.Now().UTC()
	s.text(s.putBlob(client, "counted", "text", nil))

	for name, from := range map[string]string{"$MetricsHourPrimaryTransactionsBlob": began.Format("20060102T1500"), "$MetricsMinutePrimaryTransactionsBlob": began.Format("20060102T1504")} {
		rows := map[string]aztables.EDMEntity{}
		s.eventuallyWithin(90*time.Second, name, func() bool {
			// Until there are any, their table may not be there.
			filter := "PartitionKey ge '" + from + "'"
			if s.queryError(s.service().NewClient(name), filter) != nil {
				return false
			}
			for _, row := range s.query(s.service().NewClient(name), filter) {
				rows[row.RowKey] = row
			}
			_, found := rows["user;GetBlob"]
			return found
		})
		all := rows["user;All"].Properties
		if requests, _ := all["TotalRequests"].(aztables.EDMInt64); requests < 2 {
			s.Errorf("%s: %v requests", name, all["TotalRequests"])
		}
		if put, _ := rows["user;PutBlob"].Properties["Success"].(aztables.EDMInt64); put < 1 {
			s.Errorf("%s: %v", name, rows["user;PutBlob"].Properties)
		}
		// The client takes a whole double for an integer.
		if available, err := strconv.ParseFloat(fmt.Sprint(all["Availability"]), 64); err != nil || available <= 0 || available > 100 {
			s.Errorf("%s: availability %v", name, all["Availability"])
		}
	}
}
