// Package affinitytest proves that a store keeps the contract of affinity.Store and
// affinity.Aliases. A backend runs it with three lines:
//
//	affinitytest.Run(t, func(t *testing.T) affinitytest.Stores {
//		return affinitytest.Stores{Store: openEmpty(t), …}
//	})
//
// Each test reads like a session at the keyboard; keyboard.go has the words.
package affinitytest

import (
	"testing"
	"time"

	"switchboard/internal/affinity"
)

// Stores is a backend under test. Only Store is needed.
type Stores struct {
	Store   affinity.Store
	Aliases affinity.Aliases // nil: the backend keeps none
	// Flush makes delayed writes (AddUsage) visible; nil: nothing is delayed.
	Flush func(t *testing.T)
	// Peer is a second way to the same rows, like another process; nil: there is none.
	Peer affinity.Store
	// InvalidUTF8 says that ids may be bytes that are no UTF-8.
	InvalidUTF8 bool
}

// Run tests the backend that open returns. open is called once per test, for an empty
// store each time, and closes what it opened with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Stores) {
	tests := []struct {
		name string
		test func(k *keyboard)
	}{
		{"EmptyStoreKnowsNothing", emptyStore},
		{"ClaimIsTentative", claimIsTentative},
		{"ClaimLosesToWhoWasFirst", claimLoses},
		{"ClaimMayBeServedAtOnce", claimServedAtOnce},
		{"ConfirmMarksServed", confirm},
		{"ReassignMovesAClaimWithoutCounting", reassign},
		{"ReassignNeedsTheClaimAsRead", reassignAsRead},
		{"WithdrawDeletesOnlyAClaimAsRead", withdraw},
		{"StalePinIsReplaced", stale},
		{"KeysAreToldApartByTheirPrints", keyPrints},
		{"SwitchCounts", switchCounts},
		{"SwitchNeedsThePinAsRead", switchAsRead},
		{"SwitchOfAClaimDoesNotCount", switchOfAClaim},
		{"SDB03AppliedWritesMayBeRepeated", repeats},
		{"SDB02ClaimIsOneRequests", claimIsOneRequests},
		{"SDB01ExpiredRowsAreNone", expired},
		{"SDB01UsePushesTheExpiryOn", expiryMovesOn},
		{"SDB03TimesNeverMoveBack", timesNeverMoveBack},
		{"TimesKeepTheirPrecision", precision},
		{"UsageAddsUp", usageAddsUp},
		{"UsageOfNobodyIsNoError", usageOfNobody},
		{"LargeNumbersAreExact", largeNumbers},
		{"SDB04IdsAreAnyText", idsAreAnyText},
		{"SAFF05ModelsHaveTheirOwnPins", modelsApart},
		{"TenantsAreApart", tenantsApart},
		{"EndedContext", endedContext},
		{"PeerSeesEverything", peerSees},
		{"SDB02ParallelClaimsHaveOneWinner", parallelClaims},
		{"SDB01ParallelClaimsOverAnExpiredRow", parallelClaimsOverExpired},
		{"SDB02ParallelClaimsOfOneTarget", parallelClaimsOfOneTarget},
		{"SDB03ParallelSwitchesCountOnce", parallelSwitches},
		{"SDB03ParallelSwitchesToOneTarget", parallelSwitchesToOneTarget},
		{"SDB03ParallelReassignsHaveOneWinner", parallelReassigns},
		{"SDB03ParallelUsageAddsUp", parallelUsage},
		{"SDB03RepeatedSwitchesUnderContention", repeatedSwitches},
	}
	aliasTests := []struct {
		name string
		test func(k *keyboard)
	}{
		{"AliasIsSeenAtOnce", aliasSeen},
		{"AliasIsReplaced", aliasReplaced},
		{"AliasExpires", aliasExpires},
		{"AliasIdsAreAnyText", aliasIds},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.test(sitDown(t, open(t))) })
	}
	for _, tt := range aliasTests {
		t.Run(tt.name, func(t *testing.T) {
			stores := open(t)
			if stores.Aliases == nil {
				t.Skip("the backend keeps no aliases")
			}
			tt.test(sitDown(t, stores))
		})
	}
}

// sitDown starts at a whole second near the present: a backend may delete, by its own
// clock, rows that have long expired.
func sitDown(t *testing.T, stores Stores) *keyboard {
	return &keyboard{
		T: t, Stores: stores,
		now:  time.Now().UTC().Truncate(time.Second),
		idle: 6 * time.Hour,
	}
}
