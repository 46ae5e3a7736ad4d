import { createHash } from "node:crypto";
import { escapeHtml } from "../../../../common/text/html.ts";

/** Pages that need no console: they work without JavaScript. */

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#f4f6f9;--card:#fff;--line:#d5dbe3;--accent:#1f5fbf;--wrong:#a3262a}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#a3adba;--paper:#12161c;--card:#1b212a;--line:#36404d;--accent:#7db0ff;--wrong:#ff9a9d}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
main{width:100%;max-width:24rem;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}
h1{margin:0 0 .25rem;font-size:1.375rem;line-height:1.3}
h2{margin:1.75rem 0 .25rem;font-size:1.0625rem}
p{margin:0 0 1.25rem;color:var(--soft)}
label{display:block;margin:1rem 0 .25rem;font-weight:600}
input:not([type=checkbox],[type=radio]){width:100%;padding:.6rem .75rem;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--soft);border-radius:.4rem}
.code{font-variant-numeric:tabular-nums;letter-spacing:.15em}
.aside{margin:1.25rem 0 0;text-align:center}
.check{display:flex;gap:.6rem;align-items:center;font-weight:400}
.check input{width:1.15rem;height:1.15rem;margin:0}
button,.button{display:block;width:100%;margin-top:1.5rem;padding:.7rem;font:inherit;font-weight:600;text-align:center;text-decoration:none;color:var(--card);background:var(--accent);border:0;border-radius:.4rem;cursor:pointer}
.picture{margin:0 auto 1.25rem;max-width:14rem;background:#fff;border-radius:.4rem}
.picture svg{display:block;width:100%;height:auto}
.codes{padding:0;list-style:none;font-family:ui-monospace,monospace;font-size:.8125rem;white-space:nowrap}
.or{margin:1.25rem 0 0;text-align:center}
.other{margin-top:1rem;color:var(--accent);background:none;border:1px solid currentColor}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.wrong{padding:.6rem .75rem;color:var(--wrong);border:1px solid currentColor;border-radius:.4rem}
dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:0 0 1.25rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
a{color:var(--accent)}
ul{padding-left:1.25rem}`;

/** Texts for the error codes of the sign-in form. Text from the query string is never shown itself. */
const PROBLEMS: Readonly<Record<string, string>> = {
  denied: "Company, user name or password are wrong.",
  limited: "Too many failed sign-ins. Please wait a little and try again.",
  invalid: "Please fill in company, user name and password.",
  foreign: "The form came from another site and was not used. Please sign in on this page.",
  deadline: "That took too long. Please sign in again.",
  openid: "Signing in at the provider did not work. Please try again.",
  "openid-away": "The provider does not answer. Sign in by password, or try again later.",
  "openid-account":
    "That account may not sign in here. An administrator links it, or you do: sign in by password and open your account.",
};

export function loginPage(options: {
  readonly error: string | undefined;
  readonly company: string;
  /** Name of the OpenID provider, if people may also sign in through one. */
  readonly provider?: string | undefined;
}): Page {
  const { error, company, provider } = options;
  const text = error === undefined ? undefined : (PROBLEMS[error] ?? "Signing in did not work. Please try again.");
  const problem = text === undefined ? "" : `<p class="wrong" role="alert" id="problem">${text}</p>`;
  const described = text === undefined ? "" : ` aria-describedby="problem"`;
  return page(
    "Sign in",
    `<h1>Sign in</h1>
<p>Operations data platform</p>
${problem}
<form method="post" action="/user/login">
<label for="company">Company</label>
<input id="company" name="company" value="${escapeHtml(company)}" autocomplete="organization" autocapitalize="none" spellcheck="false">
<label for="username">User name</label>
<input id="username" name="username" required autofocus autocomplete="username" autocapitalize="none" spellcheck="false"${described}>
<label for="password">Password</label>
<input id="password" name="password" type="password" required autocomplete="current-password">
<label class="check"><input type="checkbox" name="remember" value="true"> Stay signed in on this device</label>
<button type="submit">Sign in</button>
</form>
${provider === undefined ? "" : `<p class="or">or</p><a class="button other" href="/user/openid">Sign in with ${escapeHtml(provider)}</a>`}`,
  );
}

/** The page for the second step of sign-in. Its form contains the ticket in place of name and password. */
export function codePage({ ticket, isWrong }: { readonly ticket: string; readonly isWrong: boolean }): Page {
  const problem = `<p class="wrong" role="alert" id="problem">This code is wrong, or was used before.</p>`;
  return page(
    "Sign in",
    `<h1>One more step</h1>
<p>Type the code that your authenticator shows, or one of your recovery codes.</p>
${isWrong ? problem : ""}
<form method="post" action="/user/login">
<input type="hidden" name="ticket" value="${escapeHtml(ticket)}">
<label for="code">Code</label>
<input id="code" class="code" name="code" required autofocus autocomplete="one-time-code" autocapitalize="none" spellcheck="false" maxlength="64"${isWrong ? ` aria-describedby="problem"` : ""}>
<button type="submit">Sign in</button>
</form>
<p class="aside"><a href="/user/login">Begin again</a></p>`,
  );
}

export function homePage(who: { readonly user: string; readonly company: string; readonly ospace: string }): Page {
  return page(
    "Operations data platform",
    `<h1>Operations data platform</h1>
<p>You are signed in.</p>
<dl><dt>User</dt><dd>${escapeHtml(who.user)}</dd><dt>Company</dt><dd>${escapeHtml(who.company)}</dd><dt>Name space</dt><dd>${escapeHtml(who.ospace)}</dd></dl>
<ul>
<li><a href="/docs">The manual</a></li>
<li><a href="/openapi.json">The HTTP interface</a> (OpenAPI)</li>
<li><a href="/cluster/info">Data nodes</a></li>
<li><a href="/readyz">Readiness</a></li>
</ul>
<a class="button other" href="/user/account">Your account</a>
<a class="button" href="/user/logout/${encodeURIComponent(who.user)}">Sign out</a>`,
  );
}

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");
const POLICY = `default-src 'none'; img-src data:; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

/** A page and its Content-Security-Policy, as routes answer it. */
export interface Page {
  readonly page: string;
  readonly policy: string;
}

/** A page without scripts and without content of other sites. */
export function page(title: string, body: string): Page {
  return { page: documentOf(title, body), policy: POLICY };
}

function documentOf(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body><main>
${body}
</main></body>
</html>
`;
}
