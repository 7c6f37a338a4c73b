package server

import "github.com/postroom/postroom/api"

// digestRoutes are about digests.
func (s *Server) digestRoutes() group {
	digests := digestRoutes{digests: s.parts.Digests}
	reader := changes("digestRecipient", "recipient")
	return group{"Digests", "Notifications, collected for each reader and mailed when the reader wants it.",
		[]route{
			grows(large(eventsBody, post("/v1/digests/events", takesEvents(),
				unlogged("there are millions; the runs have their ids"), digests.takeDigestEvents, "takeDigestEvents",
				"Take in an event, or up to 1,000; each has its own answer"))),
			remove("/v1/digests/events", own(api.ScopeDigests), changes("digestRecipient", ""),
				digests.deleteDigestEvents, "deleteDigestEvents", "Delete events that are not mailed yet"),
			grows(post("/v1/digests/kinds", own(api.ScopeDigests), changes("digestKind", ""), digests.createDigestKind,
				"createDigestKind", "Store what is known of a category")),
			get("/v1/digests/kinds", own(api.ScopeDigests), digests.listDigestKinds, "listDigestKinds",
				"List what is known of categories"),
			get("/v1/digests/kinds/{category}", own(api.ScopeDigests), digests.getDigestKind, "getDigestKind",
				"Show what is known of a category"),
			grows(put("/v1/digests/kinds/{category}", own(api.ScopeDigests), changes("digestKind", "category"),
				digests.updateDigestKind, "updateDigestKind", "Change what is known of a category")),
			remove("/v1/digests/kinds/{category}", own(api.ScopeDigests), changes("digestKind", "category"),
				digests.deleteDigestKind, "deleteDigestKind",
				"Delete what is known of a category; its events stay"),
			get("/v1/digests/recipients", own(api.ScopeDigests), digests.listDigestRecipients,
				"listDigestRecipients", "List the readers of an account, by their ids"),
			get("/v1/digests/recipients/{recipient}", own(api.ScopeDigests), digests.getDigestRecipient,
				"getDigestRecipient", "Show a reader, with the next times and what waits"),
			grows(put("/v1/digests/recipients/{recipient}", own(api.ScopeDigests), reader, digests.putDigestRecipient,
				"putDigestRecipient", "Store a reader; its preferences are replaced")),
			patch("/v1/digests/recipients/{recipient}", own(api.ScopeDigests), reader,
				digests.patchDigestRecipient, "patchDigestRecipient",
				"Change a reader, and the preferences of the categories that the request names"),
			remove("/v1/digests/recipients/{recipient}", own(api.ScopeDigests), reader,
				digests.deleteDigestRecipient, "deleteDigestRecipient", "Delete a reader with everything that waits"),
			get("/v1/digests/recipients/{recipient}/events", own(api.ScopeDigests),
				digests.listWaitingDigestEvents, "listWaitingDigestEvents",
				"List the events of a reader that are not mailed yet, oldest first"),
			get("/v1/digests/recipients/{recipient}/preview", own(api.ScopeDigests), digests.previewDigest,
				"previewDigest", "Show what would be mailed to a reader now"),
			post("/v1/digests/recipients/{recipient}/send", own(api.ScopeDigests), reader, digests.sendDigest,
				"sendDigest", "Mail what waits for a reader now"),
			post("/v1/digests/times", own(api.ScopeDigests), unlogged("changes nothing"),
				digests.computeDigestTimes, "computeDigestTimes", "Say when a preference comes"),
			get("/v1/digests/runs", own(api.ScopeDigests), digests.listDigestRuns, "listDigestRuns",
				"List runs, the newest first"),
			get("/v1/digests/runs/{run}", own(api.ScopeDigests), digests.getDigestRun, "getDigestRun",
				"Show a run with its groups"),
			post("/v1/digests/runs/{run}/retry", own(api.ScopeDigests), changes("digestRun", "run"),
				digests.retryDigestRun, "retryDigestRun", "Let a failed run be tried again"),
		}}
}
