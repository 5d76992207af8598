package handlers

import "net/http"

// secure sets the headers that every answer carries; the page and downloads set their own content policy over it.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// Answers tell of a study to whoever signed in; a shared cache would tell others.
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses writes that another site's page sends with a signed-in browser (A3). Programs send neither
// Sec-Fetch-Site nor Origin and pass.
func sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := document(http.StatusForbidden, "This request comes from a page of another site")
		d.Code = "cross_origin"
		d.Hint = "Behind a proxy, pass the Host header on as the browser sent it"
		writeProblem(w, d)
	}))
	return p.Handler(next)
}
