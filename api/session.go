package api

// SessionRequest signs a browser in.
type SessionRequest struct {
	APIKey string `json:"api_key" minLength:"1" maxLength:"1000"`
}
