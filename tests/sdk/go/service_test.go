// The account's service: properties and stats.
package sdk

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func serviceProperties(s *scenario) {
	service := s.service()
	days := func(count int32) *aztables.RetentionPolicy {
		return &aztables.RetentionPolicy{Enabled: ptr(true), Days: ptr(count)}
	}
	rule := func(origin string) *aztables.CorsRule {
		return &aztables.CorsRule{
			AllowedOrigins: &origin, AllowedMethods: ptr("GET,PUT"), AllowedHeaders: ptr("x-ms-date,x-ms-meta-*"),
			ExposedHeaders: ptr("x-ms-request-id"), MaxAgeInSeconds: ptr(int32(500)),
		}
	}
	off := &aztables.RetentionPolicy{Enabled: ptr(false)}
	quiet := aztables.ServiceProperties{
		Logging:       &aztables.Logging{Version: ptr("1.0"), Read: ptr(false), Write: ptr(false), Delete: ptr(false), RetentionPolicy: off},
		HourMetrics:   &aztables.Metrics{Version: ptr("1.0"), Enabled: ptr(false), RetentionPolicy: off},
		MinuteMetrics: &aztables.Metrics{Version: ptr("1.0"), Enabled: ptr(false), RetentionPolicy: off},
	}
	want := aztables.ServiceProperties{
		Logging:       &aztables.Logging{Version: ptr("1.0"), Read: ptr(true), Write: ptr(false), Delete: ptr(true), RetentionPolicy: days(5)},
		HourMetrics:   &aztables.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(true), RetentionPolicy: days(7)},
		MinuteMetrics: &aztables.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(false), RetentionPolicy: days(1)},
		Cors:          []*aztables.CorsRule{rule("http://www.example.com"), rule("*")},
	}
	set := func(properties aztables.ServiceProperties) error {
		return second(service.SetProperties(s.ctx, properties, nil))
	}
	check := func(what string) {
		s.Helper()
		got, err := service.GetProperties(s.ctx, nil)
		s.must(err, "read the service properties")
		s.equal(string(s.json(got.ServiceProperties)), string(s.json(want)), what)
	}
	// The account is shared; aztables cannot clear CORS rules, but the rest is put to rest.
	defer func() { s.must(set(quiet), "switch logging and metrics off") }()

	s.must(set(want), "set everything")
	check("everything read back")

	want.Logging = &aztables.Logging{Version: ptr("1.0"), Read: ptr(false), Write: ptr(true), Delete: ptr(false), RetentionPolicy: off}
	s.must(set(aztables.ServiceProperties{Logging: want.Logging}), "set logging only")
	check("logging changed, the rest kept")
	want.Cors = []*aztables.CorsRule{rule("https://only.example.com")}
	s.must(set(aztables.ServiceProperties{Cors: want.Cors}), "set CORS only")
	check("CORS changed, the rest kept")
	want.MinuteMetrics = quiet.MinuteMetrics
	s.must(set(aztables.ServiceProperties{MinuteMetrics: want.MinuteMetrics}), "set minute metrics only")
	check("minute metrics changed, the rest kept")

	tooLong := aztables.ServiceProperties{Logging: &aztables.Logging{Version: ptr("1.0"), Read: ptr(true), Write: ptr(true), Delete: ptr(true), RetentionPolicy: days(366)}}
	s.refused(set(tooLong), 400, "InvalidXmlDocument", "retention of 366 days")
	var six []*aztables.CorsRule
	for range 6 {
		six = append(six, rule("http://www.example.com"))
	}
	s.refused(set(aztables.ServiceProperties{Cors: six}), 400, "InvalidXmlDocument", "six CORS rules")
	check("refused settings change nothing")
}

func serviceStats(s *scenario) {
	secondary, err := aztables.NewServiceClientWithSharedKey(endpoint()+"-secondary", s.credential(), clientOptions())
	s.must(err, "make a client of the secondary endpoint")
	stats, err := secondary.GetStatistics(s.ctx, nil)
	s.must(err, "read the stats")
	if stats.GeoReplication == nil || stats.GeoReplication.Status == nil || stats.GeoReplication.LastSyncTime == nil {
		s.Fatalf("stats lack parts: %+v", stats.GeoReplication)
	}
	s.equal(*stats.GeoReplication.Status, aztables.GeoReplicationStatusLive, "status")
	if last := *stats.GeoReplication.LastSyncTime; last.Before(longAgo) || last.After(time.Now().Add(15*time.Minute)) {
		s.Errorf("last sync time %v", last)
	}
	_, err = s.service().GetStatistics(s.ctx, nil)
	s.refused(err, 400, "InvalidQueryParameterValue", "stats from the primary endpoint")
}
