package postroom

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// defenses lists the tests that hold each defense of docs/security.md, in the order of that page.
const defenses = `
Unauthenticated clients
  no token: TestMatrix
  guessed tokens: TestWrongTokensOfOthersLockNobodyOut
  connections and slow bodies: TestTheOldestUnauthenticatedClientMakesRoom, TestANetworkHasItsShare,
    TestStalledUnauthenticatedClientsLeaveSubmitsAlone, TestSlowSendersAreCut
  the bounce listener: TestSilentConnectionsDoNotCloseTheBounceDoor
  unknown providers: TestUnknownProviderIsAnsweredUnread
  request smuggling: TestAChunkedBodyEndsTheConnection
  client addresses: TestForwardedAddress, TestForgedProxyHeader
  links: TestNoOpenRedirect, TestWrongLinksAreLimited, TestBlockedLinksLeadNowhere
  SMTP smuggling: TestSmuggling, TestReturnedMailSmuggling
  hostile content: TestHostileTemplatesEndSoon, TestHostileCSS
  markup: TestPublicPagesShowNothingAsMarkup, TestInjection
Customers
  other senders: TestABoundTokenSubmitsAsItsAccountOnly, TestABoundTokenSendsOverSMTPAsItsAccountOnly,
    TestABoundTokenReplaysAsItsAccountOnly
  other senders of campaigns: TestABoundTokenWritesNoCampaignAsAnother,
    TestABoundTokenSendsNoCampaignAsAnother, TestABoundTokenResumesNoCampaignAsAnother,
    TestAnOperatorOfAnAccountSendsNoCampaignAsAnother
  verification of addresses: TestWhoCannotAsk, TestOnlyTheButtonVerifies, TestWrongLinksVerifyNothing,
    TestALinkIsOfOneAccountAndItsEntry, TestTheOwnerOfAnAddressVerifiesIt
  scripts in the archive: TestPublicArchive
  floods of verification: TestMailsAreLimited
  lost senders: TestALostSenderSendsNothingMore, TestALostSenderStartsNoCampaign,
    TestAScheduledCampaignOfALostSenderIsHeld, TestARunningCampaignOfALostSenderIsHeld,
    TestADeferredMailOfALostSenderFails
  leaked tokens: TestTokenInQuery, TestRotatedTokenWorksUntilTheOverlapIsOver, TestLastUseSaysFromWhere
  other accounts on the pages: TestWhoIsBoundToAnAccountSeesNoOther
  deleted accounts: TestADeletedAccountIsNobodys
  DKIM keys: TestADomainsKeySignsForItsOwnersOnly, TestNobodysMailIsUnsigned,
    TestACampaignIsSignedAsItsAccount
  other accounts: TestMatrix, TestRivals
  other lists: TestTwoAccountsHaveListsOfOneName, TestAPreviewOpensNoPage
  memory for bodies: TestANeighbourCannotTakeAllMemory
  far schedules: TestScheduledTooFarAhead
  the embedded Redis: TestEmbeddedHasALimitOfMemory, TestOverloadIsRefusedBeforeRedisIsFull
  memory of Redis: TestWhatGrowsIsRefusedWhileRedisHasNoMemoryLeft
  refused changes: TestRefusedChangesPushNothingOutOfTheLog, TestTheLogIsNotMuchLongerThanAuditMax
  quotas: TestQuotasHoldEveryWayIn, TestQuotaOfATokenHolds, TestQuotaOfADay, TestQuotaOfAMailMerge,
    TestCampaignsWaitForTheQuotaOfTheirAccount, TestACampaignWaitsForTheQuotaOfItsToken
  parallel submits: TestQuotaIsNeverExceeded
  counts of quotas: TestQuotaAndRepeats, TestAnyHistory, TestARotatedTokenHasNoNewQuota
  quotas of stored objects: TestQuotasOfWhatAnAccountKeeps
  quotas of subscribers, events and requests: TestQuotasOfWhatIsNoMail, TestRequestsOfBoundTokensHaveALimit
  secrets stay with their place: TestHeadersOfWebhooksStayWithTheirAddress,
    TestSecretsOfAnEndpointStayWithItsURL
  private webhooks: TestDestinations, TestNamesAreJudgedByTheirAddress, TestRebindingGainsNothing
  private relays: TestAccountsStayOutsideOfTheNetwork, TestRefusedDestinations, TestTargetsOfProxies,
    TestTokenServersThatMayNotBeDialed
  cloud credentials: TestDestinations, TestRedirectsAreNotFollowed, TestTheArchiveIsNoMetadataService,
    TestTheSearchIndexIsNoMetadataService, TestOnePackageDials
  replies of other services: TestBannersAreNotTold, TestCertificatesOfOtherServersAreNotTold
  formulas: TestNoCellIsAFormula, TestAnExportHasNoFormulas
  the audit log: TestEveryChangeHasItsEntry, TestRefusalsAreInTheLog
Users
  guessed passwords: TestGuessesAtPasswordsAreLimitedByAddress
  locking out: TestGuessesLockNobodyOut, TestWrongLoginsOfOthersLockNobodyOut
  existing names: TestOneRefusalForEveryWrongLogin
  memory for sign-ins: TestLoginsTakeBoundedMemory
  second factors: TestCodesWorkOnce, TestOfTwoLoginsWithOneCodeOneSucceeds, TestCodesAreNotGuessed
  one-time links: TestLinksWorkOnce, TestFirstMinute
  viewers: TestMatrix, TestViewersOnlyLook
  ended sessions: TestSessionsOfPersonsEnd, TestSessionsHaveAnEnd
  addresses at the issuer: TestAnUnverifiedAddressIsNobody, TestTheFirstLoginBindsTheSubject
  disabled users: TestAPersonThatWasDisabledHasNoOtherName, TestAUserWithTwoAddressesIsOnePerson,
    TestPersonsOfBeforeKeepTheirUser
  tokens of the issuer: TestATokenWithAWrongSignatureIsRefused
  the browser of a sign-in: TestOnlyTheBrowserThatBeganFinishes, TestLoginAtAnIssuer
  open browsers: TestOwnChangesNeedThePassword
  other sites: TestSessions
  planted cookies: TestCookiesOverTLSAreOfThisHostOnly, TestHSTSNeedsTLS
Recipients
  co-recipients: TestNobodySpeaksForACoRecipient
  forged bounces: TestMailsConfirmEachOther
  list bombing: TestMailsThatAskAreLimited, TestAFormIsConfirmed
  subscription oracle: TestFormsTellNothing, TestAFormSaysNothingAboutAnAddress
  subscribing others: TestFormToSubscription, TestConfirmationBringsBackWhoLeft
  confirmations: TestLinksThatConfirmNothing
  unsubscribing others: TestScannersUnsubscribeNobody
Redis
  passwords in Redis: TestNoSecretIsReadableAnywhere
  moved hosts: TestAHostChangedInRedisGetsNoSecret
  bodies in Redis: TestNoBodyIsReadableInRedis, TestHashesOfSealedMailNeedTheSecret
  dialogues: TestDialogueHasNoSecrets, TestSealedDialogues
  dialogues of private servers: TestDialogue
  moved content: TestAContentMovedToAnotherMessage
  tokens and sessions: TestWhoWritesToRedisIsNoAdmin, TestWhoWritesToRedisHasNoSession
  users: TestNothingOfAPersonIsReadableInRedis, TestWhoWritesToRedisIsNoPerson
  the audit chain: TestTamperingIsNoticed
`

var (
	namedTest    = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+\b`)
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// TestDefensesHaveTests: a test that docs/security.md relies on was neither renamed nor removed.
func TestDefensesHaveTests(t *testing.T) {
	tests := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range testFunction.FindAllStringSubmatch(string(source), -1) {
			tests[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range namedTest.FindAllString(defenses, -1) {
		if !tests[name] {
			t.Errorf("a defense of docs/security.md relies on %s, which is not there", name)
		}
	}
}
