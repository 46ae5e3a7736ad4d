import encodeQR from "qr";
import { escapeHtml } from "../../../../common/text/html.ts";
import { page, type Page } from "./pages.ts";
import type { NewSecondFactor, SessionView } from "../types.ts";

/** Texts for the error codes of these pages. */
const PROBLEMS: Readonly<Record<string, string>> = {
  denied: "The password is wrong.",
  invalid: "The new password is too easy to guess, or was the first one. Take a longer one.",
  limited: "Too many wrong passwords or codes. Please wait a little and try again.",
  not_found: "That session is over already.",
  conflict: "Something else was changed meanwhile. Please begin again.",
  unavailable: "Something needed is away. Please try again later.",
  "openid-away": "The provider does not answer. Please try again later.",
};

const DUTIES = {
  password: "Your password was set by somebody else. Please change it first: nothing else is open to you until then.",
  "second factor":
    "Your company requires a second factor. Please turn it on below: nothing else is open to you until then.",
} as const;

const SIGN_OUT = `<p class="aside"><a href="/user/logout">Sign out</a></p>`;

export interface AccountView {
  readonly user: string;
  /** The sign-in requirement that the user must fulfil before anything else. */
  readonly owes?: "password" | "second factor" | undefined;
  readonly error: string | undefined;
  readonly sessions: readonly SessionView[];
  /** Recovery codes that are left; absent without a second factor. */
  readonly recoveryCodes: number | undefined;
  /** Name of the OpenID provider; `isLinked` is true if an account there signs in as this user. */
  readonly provider?: { readonly name: string; readonly isLinked: boolean } | undefined;
}

export function accountPage({ user, owes, error, sessions, recoveryCodes, provider }: AccountView): Page {
  const problem = error === undefined ? "" : problemLine(PROBLEMS[error] ?? "That did not work. Please try again.");
  return page(
    "Your account",
    `<h1>Your account</h1>
<p>${escapeHtml(user)}</p>
${problem}
${owes === undefined ? "" : problemLine(DUTIES[owes])}
${changeForm()}
${sessionsForm(sessions)}
${recoveryCodes === undefined ? beginForm() : removeForm(recoveryCodes)}
${provider === undefined ? "" : linkForm(provider)}
<p class="aside"><a href="/">Back</a></p>
${SIGN_OUT}`,
  );
}

/** The only page that shows the secret. */
export function enrolPage({ uri, secret }: NewSecondFactor): Page {
  return page(
    "Second factor",
    `<h1>Second factor</h1>
<p>Take this picture with an authenticator, or type the key into it. Then type the code that it shows.</p>
<div class="picture" role="img" aria-label="The key as a QR code">${encodeQR(uri, "svg", { ecc: "medium", border: 4 })}</div>
<dl><dt>Key</dt><dd class="code" id="secret">${escapeHtml(secret.replace(/(.{4})(?!$)/g, "$1 "))}</dd></dl>
${codeForm(false)}
${SIGN_OUT}`,
  );
}

/** Asks for the code again after a wrong one. Does not show the secret, which the device already has. */
export function confirmPage(): Page {
  return page("Second factor", `<h1>Second factor</h1>\n${codeForm(true)}\n${SIGN_OUT}`);
}

export function recoveryPage(codes: readonly string[]): Page {
  return page(
    "Recovery codes",
    `<h1>The second factor is on</h1>
<p>Keep these recovery codes where the device is not. Each signs you in once in place of a code. They are not shown again.</p>
<ul class="codes">${codes.map((code) => `<li>${escapeHtml(code)}</li>`).join("")}</ul>
<a class="button" href="/user/account">I have kept them</a>
${SIGN_OUT}`,
  );
}

function changeForm(): string {
  return `<h2>Password</h2>
<p>Changing it ends all your sessions and tokens.</p>
<form method="post" action="/user/account/password">
<label for="present">Present password</label>
<input id="present" name="password" type="password" required autocomplete="current-password">
<label for="new">New password</label>
<input id="new" name="newpassword" type="password" required autocomplete="new-password">
<button type="submit">Change</button>
</form>`;
}

/** Form that ends one session, or all sessions except the current one. */
function sessionsForm(sessions: readonly SessionView[]): string {
  const others = sessions.filter(({ current }) => !current);
  const here = sessions.length > others.length ? "<p>You are signed in here" : "<p>You are signed in";
  if (others.length === 0) return `<h2>Sessions</h2>\n${here}, and nowhere else.</p>`;
  const choices = others.map(({ id, createdMs, remote }) =>
    choice(id, `${new Date(createdMs).toISOString().slice(0, 16).replace("T", " ")} UTC, from ${remote}`),
  );
  return `<h2>Sessions</h2>
${here}, and by these sessions:</p>
<form method="post" action="/user/account/sessions">
${choices.join("\n")}
${choice("", "all of these", true)}
<label for="sessions">Password</label>
<input id="sessions" name="password" type="password" required autocomplete="current-password">
<button type="submit">End</button>
</form>`;
}

function choice(id: string, text: string, isChosen = false): string {
  return `<label class="check"><input type="radio" name="id" value="${escapeHtml(id)}"${isChosen ? " checked" : ""}> ${escapeHtml(text)}</label>`;
}

function beginForm(): string {
  return `<h2>Second factor</h2>
<p>Signing in by password takes a code of your device besides.</p>
${passwordForm("/user/account/secondfactor", { id: "begin", button: "Turn on" })}`;
}

function removeForm(left: number): string {
  return `<h2>Second factor</h2>
<p>It is on. ${left} recovery ${left === 1 ? "code is" : "codes are"} left.</p>
${passwordForm("/user/account/secondfactor/remove", { id: "remove", button: "Turn off" })}`;
}

function linkForm({ name, isLinked }: { readonly name: string; readonly isLinked: boolean }): string {
  const shown = escapeHtml(name);
  const text = isLinked
    ? `Your account at ${shown} signs in as this user. Unlinking it ends your sessions.`
    : `An account of yours at ${shown} can sign in as this user.`;
  const form = isLinked
    ? passwordForm("/user/openid/unlink", { id: "unlink", button: "Unlink" })
    : passwordForm("/user/openid/link", { id: "link", button: "Link" });
  return `<h2>${shown}</h2>\n<p>${text}</p>\n${form}`;
}

function passwordForm(action: string, { id, button }: { readonly id: string; readonly button: string }): string {
  return `<form method="post" action="${action}">
<label for="${id}">Password</label>
<input id="${id}" name="password" type="password" required autocomplete="current-password">
<button type="submit">${button}</button>
</form>`;
}

function codeForm(isWrong: boolean): string {
  return `${isWrong ? problemLine("This code is wrong. Look at the clock of the device, and type the code it shows now.") : ""}
<form method="post" action="/user/account/secondfactor/confirm">
<label for="code">Code</label>
<input id="code" class="code" name="code" required autofocus autocomplete="one-time-code" inputmode="numeric" maxlength="64">
<button type="submit">Confirm</button>
</form>
<p class="aside"><a href="/user/account">Leave it</a></p>`;
}

function problemLine(text: string): string {
  return `<p class="wrong" role="alert">${text}</p>`;
}
