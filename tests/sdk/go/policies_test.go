// Stored access policies, and signatures that refer to them.
package sdk

import (
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func accessPolicies(s *scenario) {
	table := s.newTable()
	s.equal(s.policies(table), []*aztables.SignedIdentifier(nil), "policies of a new table")

	fraction := time.Date(2024, 5, 6, 7, 8, 9, 123456700, time.UTC)
	want := []*aztables.SignedIdentifier{
		{ID: ptr("readers"), AccessPolicy: &aztables.AccessPolicy{Start: &longAgo, Expiry: &farAhead, Permission: ptr("r")}},
		{ID: ptr("everyone & <all>"), AccessPolicy: &aztables.AccessPolicy{Start: &fraction, Expiry: &fartherYet, Permission: ptr("raud")}},
	}
	s.setPolicies(table, want)
	s.equal(s.policies(table), want, "policies read back")

	five := manyPolicies(5)
	s.setPolicies(table, five)
	s.equal(s.policies(table), five, "five policies replace the two")

	// aztables puts its own error in the place of the service's, so the answer is looked at.
	var response *http.Response
	_, err := table.SetAccessPolicy(policy.WithCaptureResponse(s.ctx, &response), &aztables.SetAccessPolicyOptions{TableACL: manyPolicies(6)})
	if err == nil {
		s.Errorf("six policies were accepted")
	} else {
		body, _ := runtime.Payload(response)
		s.equal(response.StatusCode, 400, "status of six policies")
		s.equal(xmlErrorCode(body), "InvalidXmlDocument", "code of six policies")
	}
	s.equal(s.policies(table), five, "policies after the refusal")

	s.setPolicies(table, nil)
	s.equal(s.policies(table), []*aztables.SignedIdentifier(nil), "policies after clearing them")
}

func storedPolicy(s *scenario) {
	table, name := s.newNamedTable()
	s.add(table, s.edm("p", "r", nil))
	grant := func(expiry time.Time, permission string) {
		s.Helper()
		s.setPolicies(table, []*aztables.SignedIdentifier{
			{ID: ptr("team"), AccessPolicy: &aztables.AccessPolicy{Start: &longAgo, Expiry: &expiry, Permission: &permission}},
			{ID: ptr("another"), AccessPolicy: &aztables.AccessPolicy{Start: &longAgo, Expiry: &farAhead, Permission: ptr("raud")}},
		})
	}
	client := s.tableClient(name, s.tableToken(aztables.SASSignatureValues{TableName: name, Identifier: "team"}))
	get := func() error { return second(client.GetEntity(s.ctx, "p", "r", nil)) }
	add := func(row string) error { return second(client.AddEntity(s.ctx, s.edm("p", row, nil), nil)) }

	s.refused(get(), 403, "AuthenticationFailed", "get before the policy exists")
	grant(farAhead, "r")
	s.must(get(), "get by the policy")
	s.refused(add("x"), 403, "AuthorizationPermissionMismatch", "insert by a policy for reading")
	grant(farAhead, "a")
	s.must(add("added"), "insert after the policy was changed")
	s.refused(get(), 403, "AuthorizationPermissionMismatch", "get after the policy was changed")
	grant(notSoLong, "r")
	s.refused(get(), 403, "AuthenticationFailed", "get after the policy's end")
	grant(farAhead, "r")
	s.must(get(), "get by the policy again")
	s.setPolicies(table, nil)
	s.refused(get(), 403, "AuthenticationFailed", "get after the policy was removed")

	// A policy may leave permissions to the signature.
	s.setPolicies(table, []*aztables.SignedIdentifier{{ID: ptr("team"), AccessPolicy: &aztables.AccessPolicy{Start: &longAgo, Expiry: &farAhead}}})
	mixed := s.tableClient(name, s.tableToken(aztables.SASSignatureValues{TableName: name, Identifier: "team", Permissions: "r"}))
	s.must(second(mixed.GetEntity(s.ctx, "p", "r", nil)), "get with the policy's times and the token's permission")
}

func manyPolicies(count int) []*aztables.SignedIdentifier {
	var policies []*aztables.SignedIdentifier
	for i := range count {
		policies = append(policies, &aztables.SignedIdentifier{
			ID: ptr(fmt.Sprintf("policy-%d", i)), AccessPolicy: &aztables.AccessPolicy{Start: &longAgo, Expiry: &farAhead, Permission: ptr("ra")},
		})
	}
	return policies
}

func (s *scenario) policies(table *aztables.Client) []*aztables.SignedIdentifier {
	s.Helper()
	got, err := table.GetAccessPolicy(s.ctx, nil)
	s.must(err, "read the access policies")
	return got.SignedIdentifiers
}

func (s *scenario) setPolicies(table *aztables.Client, policies []*aztables.SignedIdentifier) {
	s.Helper()
	_, err := table.SetAccessPolicy(s.ctx, &aztables.SetAccessPolicyOptions{TableACL: policies})
	s.must(err, "set the access policies")
}

var xmlCode = regexp.MustCompile(`<(?:m:)?[cC]ode>(\w+)</`)

func xmlErrorCode(body []byte) string {
	if found := xmlCode.FindSubmatch(body); found != nil {
		return string(found[1])
	}
	return ""
}
