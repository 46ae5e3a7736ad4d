import { Type } from "typebox";
import {
  OpenIdAccountInput,
  OpenIdAccountReply,
  OpenIdBeginInput,
  OpenIdCallbackInput,
  OpenIdLinkInput,
  OpenIdLinkReply,
} from "../../../common/api/openid.ts";
import { UserIdInput } from "../../../common/api/users.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../http/interface/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import { CodeNeeded, codePage, type ProviderAccount, type SignedIn } from "../users/index.ts";
import { departurePage } from "./pages.ts";
import type { OpenIdService } from "./service.ts";

const LOGIN_PATH = "/user/login";
const ACCOUNT_PATH = "/user/account";
const CODE_PAGE = "The page for the code of the second factor";

export function openidRoutes(openid: OpenIdService): readonly Endpoint[] {
  return [...signInRoutes(openid), ...ownRoutes(openid), ...adminRoutes(openid)];
}

function signInRoutes(openid: OpenIdService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/user/openid",
      permission: "public",
      summary: "Sends the browser to the OpenID provider to sign in there",
      input: OpenIdBeginInput,
      output: Type.String(),
      bare: { redirect: "The provider, or the sign-in page with the reason", only: true },
      handler: async (call) => {
        // If the provider remembers the user, a link on another site would sign the user in without a click.
        if (!call.client.maySignIn && call.client.browser) return { redirect: LOGIN_PATH };
        try {
          const { address, ticket, lastingMs } = await openid.begin(call.input);
          return { redirect: address, ticket: { text: ticket, lastingMs } };
        } catch (error) {
          return backToForm(call, error);
        }
      },
    }),
    endpoint({
      method: "GET",
      path: "/user/openid/callback",
      permission: "public",
      summary: "Where the OpenID provider sends the browser back; signs in, or links an account",
      input: OpenIdCallbackInput,
      output: Type.String(),
      bare: {
        redirect: "The start page, the account of the user, or back with the reason",
        page: CODE_PAGE,
        only: true,
      },
      handler: async (call) => {
        try {
          return arrived(await openid.finish(arrivalOf(call)));
        } catch (error) {
          if (call.client.browser && error instanceof CodeNeeded) return { ...codePage(error), ticket: {} };
          return backToForm(call, error);
        }
      },
    }),
  ];
}

function ownRoutes(openid: OpenIdService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/user/openid/account",
      permission: "public",
      signedIn: true,
      summary: "One's own account at the OpenID provider",
      input: Type.Object({}),
      output: OpenIdAccountReply,
      handler: async ({ principal }) => {
        requireSignedIn(principal);
        return { message: told(await openid.own(principal)) };
      },
    }),
    endpoint({
      method: "POST",
      path: "/user/openid/link",
      permission: "public",
      signedIn: true,
      summary: "Link one's own account at the OpenID provider; takes the password, and goes on there",
      input: OpenIdLinkInput,
      output: OpenIdLinkReply,
      bare: { page: "A page that goes on to the provider", redirect: "The account of the user, with the reason" },
      body: "form",
      handler: async (call) => {
        requireSignedIn(call.principal);
        try {
          const { address, ticket: text, lastingMs } = await openid.beginLink(call.principal, call.input.password);
          const ticket = { text, lastingMs };
          if (!call.client.browser) return { message: address, ticket };
          return { ...departurePage(address), ticket };
        } catch (error) {
          return backToAccount(call, error);
        }
      },
    }),
    endpoint({
      method: "POST",
      path: "/user/openid/unlink",
      permission: "public",
      signedIn: true,
      summary: "Unlink one's own account at the OpenID provider; takes the password, and ends one's sessions",
      input: OpenIdLinkInput,
      output: Type.String(),
      bare: { redirect: "The sign-in page, or the account of the user with the reason" },
      body: "form",
      handler: async (call) => {
        requireSignedIn(call.principal);
        try {
          await openid.unlinkOwn(call.principal, call.input.password);
          return call.client.browser ? { redirect: LOGIN_PATH, session: {} } : { message: "" };
        } catch (error) {
          return backToAccount(call, error);
        }
      },
    }),
  ];
}

function adminRoutes(openid: OpenIdService): readonly Endpoint[] {
  const path = "/admin/users/:userid/openid";
  return [
    endpoint({
      method: "GET",
      path,
      permission: "users:read",
      summary: "The account of a user at the OpenID provider",
      input: UserIdInput,
      output: OpenIdAccountReply,
      handler: async ({ principal, input: { userid } }) => ({ message: told(await openid.of(principal, userid)) }),
    }),
    endpoint({
      method: "PUT",
      path,
      permission: "users:write",
      summary: "Link a user to an account at the OpenID provider, which then signs in as that user",
      input: OpenIdAccountInput,
      output: Type.String(),
      body: "json",
      handler: async ({ principal, input: { userid, subject } }) => {
        await openid.link(principal, userid, subject);
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path,
      permission: "users:write",
      summary: "Unlink a user from the account at the OpenID provider, and end what is signed in",
      input: UserIdInput,
      output: Type.String(),
      handler: async ({ principal, input: { userid } }) => {
        await openid.unlink(principal, userid);
        return { message: "" };
      },
    }),
  ];
}

/**
 * The sealed ticket proves which browser began the sign-in. `maySignIn` is not checked, because the request comes from
 * the provider's site.
 */
function arrivalOf({
  input,
  client: { ticket, session, remote },
  principal,
}: Call<Record<string, string | undefined>>) {
  const { code, state, iss, error } = input;
  const given = Object.entries({ code, state, iss, error }).filter((entry): entry is [string, string] => !!entry[1]);
  return { answer: Object.fromEntries(given), ticket, principal, session, remote };
}

function arrived(signedIn: SignedIn | undefined): Answer<string> {
  if (signedIn === undefined) return { redirect: ACCOUNT_PATH, ticket: {} };
  const { session: id, lastingMs, home } = signedIn;
  return { redirect: home, session: { id, ...(lastingMs !== undefined && { lastingMs }) }, ticket: {} };
}

/**
 * Redirects a browser to the sign-in form with the problem, because the user can sign in by password there. A program
 * gets the error.
 */
function backToForm({ client }: Call<unknown>, error: unknown): Answer<string> {
  if (!client.browser || !isAppError(error) || error.code === "internal") throw error;
  return { redirect: `${LOGIN_PATH}?error=${problemOf(error)}`, ticket: {} };
}

function backToAccount({ client }: Call<unknown>, error: unknown): Answer<string> {
  if (!client.browser || !isAppError(error, "denied", "limited", "unavailable", "unsupported")) throw error;
  const isAbout = isAppError(error, "denied", "limited");
  return { redirect: `${ACCOUNT_PATH}?error=${isAbout ? error.code : "openid-away"}` };
}

function problemOf({ code, details }: AppError): string {
  if (code === "unavailable" || code === "unsupported") return "openid-away";
  if (code === "deadline" || code === "limited") return code;
  return details?.["reason"] === "account" ? "openid-account" : "openid";
}

function told(account: ProviderAccount | undefined): ProviderAccount {
  return account ?? { issuer: "", subject: "" };
}

function requireSignedIn({ user }: Principal): void {
  if (user === "") throw new AppError("signin", "Nobody is signed in.");
}
