// The queue service as a whole: properties and stats.
package sdk

import (
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
)

func queueServiceProperties(s *scenario) {
	service := s.queueService()
	days := func(count int32) *azqueue.RetentionPolicy {
		return &azqueue.RetentionPolicy{Enabled: ptr(true), Days: ptr(count)}
	}
	rule := func(origin string) *azqueue.CORSRule {
		return &azqueue.CORSRule{
			AllowedOrigins: &origin, AllowedMethods: ptr("GET,PUT"), AllowedHeaders: ptr("x-ms-date,x-ms-meta-*"),
			ExposedHeaders: ptr("x-ms-request-id"), MaxAgeInSeconds: ptr(int32(500)),
		}
	}
	off := &azqueue.RetentionPolicy{Enabled: ptr(false)}
	logging := func(on bool, retention *azqueue.RetentionPolicy) *azqueue.Logging {
		return &azqueue.Logging{Version: ptr("1.0"), Read: &on, Write: ptr(false), Delete: &on, RetentionPolicy: retention}
	}
	quiet := &azqueue.Metrics{Version: ptr("1.0"), Enabled: ptr(false), RetentionPolicy: off}
	want := azqueue.SetPropertiesOptions{
		Logging:       logging(true, days(5)),
		HourMetrics:   &azqueue.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(true), RetentionPolicy: days(7)},
		MinuteMetrics: &azqueue.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(false), RetentionPolicy: days(1)},
		CORS:          []*azqueue.CORSRule{rule("http://www.example.com"), rule("*")},
	}
	set := func(properties azqueue.SetPropertiesOptions) error {
		return second(service.SetProperties(s.ctx, &properties))
	}
	check := func(what string) {
		s.Helper()
		got, err := service.GetServiceProperties(s.ctx, nil)
		s.must(err, "read the service properties")
		read := azqueue.SetPropertiesOptions{Logging: got.Logging, HourMetrics: got.HourMetrics, MinuteMetrics: got.MinuteMetrics, CORS: got.CORS}
		s.equal(string(s.json(read)), string(s.json(want)), what)
	}
	// The account is shared, so logging and metrics are put to rest.
	defer func() {
		s.must(set(azqueue.SetPropertiesOptions{Logging: logging(false, off), HourMetrics: quiet, MinuteMetrics: quiet}), "switch logging and metrics off")
	}()

	s.must(set(want), "set everything")
	check("everything read back")
	want.Logging = logging(false, off)
	s.must(set(azqueue.SetPropertiesOptions{Logging: want.Logging}), "set logging only")
	check("logging changed, the rest kept")
	want.CORS = []*azqueue.CORSRule{rule("https://only.example.com")}
	s.must(set(azqueue.SetPropertiesOptions{CORS: want.CORS}), "set CORS only")
	check("CORS changed, the rest kept")
	want.MinuteMetrics = quiet
	s.must(set(azqueue.SetPropertiesOptions{MinuteMetrics: quiet}), "set minute metrics only")
	check("minute metrics changed, the rest kept")

	s.refused(set(azqueue.SetPropertiesOptions{Logging: logging(true, days(366))}), 400, "InvalidXmlDocument", "retention of 366 days")
	var six []*azqueue.CORSRule
	for range 6 {
		six = append(six, rule("http://www.example.com"))
	}
	s.refused(set(azqueue.SetPropertiesOptions{CORS: six}), 400, "InvalidXmlDocument", "six CORS rules")
	check("refused settings change nothing")
}

func queueServiceStats(s *scenario) {
	stats, err := s.queueServiceAt(queueEndpoint()+"-secondary", os.Getenv("LARIMAR_KEY")).GetStatistics(s.ctx, nil)
	s.must(err, "read the stats")
	if stats.GeoReplication == nil || stats.GeoReplication.Status == nil || stats.GeoReplication.LastSyncTime == nil {
		s.Fatalf("stats lack parts: %+v", stats.GeoReplication)
	}
	s.equal(*stats.GeoReplication.Status, azqueue.GeoReplicationStatusLive, "status")
	if last := *stats.GeoReplication.LastSyncTime; last.Before(longAgo) || last.After(time.Now().Add(15*time.Minute)) {
		s.Errorf("last sync time %v", last)
	}
	s.refused(second(s.queueService().GetStatistics(s.ctx, nil)), 400, "InvalidQueryParameterValue", "stats from the primary endpoint")
}
