// The blob service as a whole: properties, stats, account information.
package sdk

import (
	"os"
	"strings"
	"time"

	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

func blobServiceProperties(s *scenario) {
	service := s.blobService()
	days := func(count int32) *blobservice.RetentionPolicy {
		return &blobservice.RetentionPolicy{Enabled: ptr(true), Days: ptr(count)}
	}
	rule := func(origin string) *blobservice.CORSRule {
		return &blobservice.CORSRule{
			AllowedOrigins: &origin, AllowedMethods: ptr("GET,PUT"), AllowedHeaders: ptr("x-ms-date,x-ms-meta-*"),
			ExposedHeaders: ptr("x-ms-request-id"), MaxAgeInSeconds: ptr(int32(500)),
		}
	}
	off := &blobservice.RetentionPolicy{Enabled: ptr(false)}
	logging := func(on bool, retention *blobservice.RetentionPolicy) *blobservice.Logging {
		return &blobservice.Logging{Version: ptr("1.0"), Read: &on, Write: ptr(false), Delete: &on, RetentionPolicy: retention}
	}
	quiet := &blobservice.Metrics{Version: ptr("1.0"), Enabled: ptr(false), RetentionPolicy: off}
	want := blobservice.SetPropertiesOptions{
		Logging:       logging(true, days(5)),
		HourMetrics:   &blobservice.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(true), RetentionPolicy: days(7)},
		MinuteMetrics: &blobservice.Metrics{Version: ptr("1.0"), Enabled: ptr(true), IncludeAPIs: ptr(false), RetentionPolicy: days(1)},
		CORS:          []*blobservice.CORSRule{rule("http://www.example.com"), rule("*")},
	}
	set := func(properties blobservice.SetPropertiesOptions) error {
		return second(service.SetProperties(s.ctx, &properties))
	}
	check := func(what string) {
		s.Helper()
		got, err := service.GetProperties(s.ctx, nil)
		s.must(err, "read the service properties")
		read := blobservice.SetPropertiesOptions{Logging: got.Logging, HourMetrics: got.HourMetrics, MinuteMetrics: got.MinuteMetrics, CORS: got.CORS}
		s.equal(string(s.json(read)), string(s.json(want)), what)
	}
	// The account is shared, so logging and metrics are put to rest.
	defer func() {
		s.must(set(blobservice.SetPropertiesOptions{Logging: logging(false, off), HourMetrics: quiet, MinuteMetrics: quiet}), "switch logging and metrics off")
	}()

	s.must(set(want), "set everything")
	check("everything read back")
	want.Logging = logging(false, off)
	s.must(set(blobservice.SetPropertiesOptions{Logging: want.Logging}), "set logging only")
	check("logging changed, the rest kept")
	want.CORS = []*blobservice.CORSRule{rule("https://only.example.com")}
	s.must(set(blobservice.SetPropertiesOptions{CORS: want.CORS}), "set CORS only")
	check("CORS changed, the rest kept")
	want.MinuteMetrics = quiet
	s.must(set(blobservice.SetPropertiesOptions{MinuteMetrics: quiet}), "set minute metrics only")
	check("minute metrics changed, the rest kept")

	s.refused(set(blobservice.SetPropertiesOptions{Logging: logging(true, days(366))}), 400, "InvalidXmlDocument", "retention of 366 days")
	var six []*blobservice.CORSRule
	for range 6 {
		six = append(six, rule("http://www.example.com"))
	}
	s.refused(set(blobservice.SetPropertiesOptions{CORS: six}), 400, "InvalidXmlDocument", "six CORS rules")
	check("refused settings change nothing")
}

func blobServiceStats(s *scenario) {
	stats, err := s.blobServiceAt(blobEndpoint()+"-secondary", os.Getenv("LARIMAR_KEY")).GetStatistics(s.ctx, nil)
	s.must(err, "read the stats")
	if stats.GeoReplication == nil || stats.GeoReplication.Status == nil || stats.GeoReplication.LastSyncTime == nil {
		s.Fatalf("stats lack parts: %+v", stats.GeoReplication)
	}
	s.equal(string(*stats.GeoReplication.Status), "live", "status")
	if last := *stats.GeoReplication.LastSyncTime; last.Before(longAgo) || last.After(time.Now().Add(15*time.Minute)) {
		s.Errorf("last sync time %v", last)
	}
	s.refused(second(s.blobService().GetStatistics(s.ctx, nil)), 400, "InvalidQueryParameterValue", "stats from the primary endpoint")

	info, err := s.blobService().GetAccountInfo(s.ctx, nil)
	s.must(err, "read the account's information")
	s.equal(string(*info.AccountKind), "StorageV2", "kind of the account")
	if !strings.HasPrefix(string(*info.SKUName), "Standard_") {
		s.Errorf("SKU %s", *info.SKUName)
	}
}
