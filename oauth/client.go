package oauth

// Client is what is needed to ask for access tokens on an owner's behalf. Everything is in clear text: whoever stores one seals the
// secrets.
type Client struct {
	// Provider fills in TokenURL and Scope where these are empty: "gmail" or "office365". Empty: TokenURL has to be given.
	Provider string
	// TokenURL is the token endpoint: https, or http on the loopback interface. Empty: the provider's.
	TokenURL string
	// ClientID and ClientSecret are what the provider registered the application under. ClientSecret may be empty for a public client.
	ClientID, ClientSecret string
	// RefreshToken is what the owner's consent gave.
	RefreshToken string
	// Scope is asked for with each token, several separated by spaces. Empty: the provider's, or none, which means the scope of the
	// consent.
	Scope string
}
