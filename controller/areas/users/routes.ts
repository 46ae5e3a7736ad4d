import { Type, type Static } from "typebox";
import {
  GoAuthInput,
  LoginInput,
  LoginPageInput,
  LogoutInput,
  NamedLogoutInput,
  SignInInput,
  SignInOutput,
} from "../../../common/api/users.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../http/interface/endpoint.ts";
import { requireMayChange } from "../permissions/index.ts";
import type { Tenants } from "../tenants/index.ts";
import { accountRoutes } from "./pages/routes.ts";
import { directoryRoutes } from "./directory/routes.ts";
import { isOwnPath } from "./pages/start-pages.ts";
import { factorRoutes } from "./second-factor/routes.ts";
import { policyRoutes } from "./second-factor/policy-routes.ts";
import { codePage, homePage, loginPage } from "./pages/pages.ts";
import type { UserService } from "./service.ts";
import { signInsRoutes } from "./sessions/routes.ts";
import { CodeNeeded } from "./second-factor/tickets.ts";
import type { SignedIn, SignInRequest } from "./types.ts";

const LOGIN_PATH = "/user/login";
const CODE_PAGE = "The page for the code of the second factor";

export interface UserRouteServices {
  readonly users: UserService;
  readonly tenants: Tenants;
  /** Name of the OpenID provider; absent: sign-in through one is not possible. */
  readonly provider?: string | undefined;
}

export function userRoutes(services: UserRouteServices): readonly Endpoint[] {
  const { users, provider } = services;
  const setTenantHome = users.setTenantHome.bind(users);
  return [
    ...signInRoutes(services),
    goAuthRoute(services),
    ...pageRoutes(services),
    ...logoutRoutes(services),
    ...signInsRoutes(users),
    ...factorRoutes(users),
    ...policyRoutes(users),
    ...accountRoutes(users, provider),
    ...directoryRoutes({ directory: users.directory, setTenantHome, passwordFault: users.passwordFault }),
  ];
}

function signInRoutes({ users }: UserRouteServices): readonly Endpoint[] {
  const define = (method: "GET" | "POST"): Endpoint =>
    endpoint({
      method,
      path: "/user/signin",
      permission: "public",
      summary: "Signs in a program; answers the session id and sets it as cookie",
      input: SignInInput,
      output: SignInOutput,
      body: "form",
      handler: async (call) => {
        const signedIn = await users.signIn({ ...call.input, ...originOf(call) });
        return { message: signedIn.session, session: cookieOf(signedIn) };
      },
    });
  return [define("GET"), define("POST")];
}

function goAuthRoute({ users }: UserRouteServices): Endpoint {
  return endpoint({
    method: "POST",
    path: "/user/goauth",
    permission: "public",
    summary: "Signs in and goes on to a page of this site",
    input: GoAuthInput,
    output: Type.String(),
    bare: { redirect: "The page, or the sign-in page with the reason", page: CODE_PAGE, only: true },
    body: "form",
    handler: async (call) => {
      const { redirect = "" } = call.input;
      if (redirect !== "" && !isOwnPath(redirect))
        throw new AppError("invalid", "redirect must be the path of a page of this site.");
      try {
        const signedIn = await users.signIn({ ...call.input, ...originOf(call) });
        return { redirect: signedIn.home, session: cookieOf(signedIn) };
      } catch (error) {
        return backToForm(call, error);
      }
    },
  });
}

function pageRoutes({ users, tenants, provider }: UserRouteServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/",
      permission: "public",
      summary: "Start page, or the sign-in page for those who are not signed in",
      input: Type.Object({}),
      output: Type.String(),
      bare: { page: "The start page", redirect: "The sign-in page, or the account of the user", only: true },
      handler: async ({ principal }) => {
        if (principal.user === "") return { redirect: LOGIN_PATH };
        if (principal.owes) return { redirect: "/user/account" };
        return homePage({ user: principal.user, company: principal.tenant, ospace: principal.ospace });
      },
    }),
    endpoint({
      method: "GET",
      path: LOGIN_PATH,
      permission: "public",
      summary: "Sign-in page",
      input: LoginPageInput,
      output: Type.String(),
      bare: { page: "The sign-in page", only: true },
      handler: async ({ input }) => {
        const only = await tenants.only();
        return loginPage({ error: input.error, company: only?.name ?? "", provider });
      },
    }),
    endpoint({
      method: "POST",
      path: LOGIN_PATH,
      permission: "public",
      summary: "Signs in by HTML form and goes to the start page",
      input: LoginInput,
      output: Type.String(),
      bare: { redirect: "The start page, or the sign-in page with the reason", page: CODE_PAGE, only: true },
      body: "form",
      handler: async (call) => {
        try {
          const signedIn = await signInByForm(users, call);
          return { redirect: signedIn.home, session: cookieOf(signedIn) };
        } catch (error) {
          return backToForm(call, error);
        }
      },
    }),
  ];
}

function logoutRoutes({ users }: UserRouteServices): readonly Endpoint[] {
  const logout = async ({ client, principal }: Call<unknown>): Promise<Answer<string>> => {
    requireMayChange(principal);
    if (client.session !== undefined) await users.signOut(principal, client.session);
    return { redirect: LOGIN_PATH, session: {} };
  };
  const common = {
    method: "GET",
    permission: "public",
    summary: "Ends the session of this call",
    output: Type.String(),
    bare: { redirect: "The sign-in page", only: true },
    handler: logout,
  } as const;
  return [
    endpoint({ ...common, path: "/user/logout", input: LogoutInput }),
    endpoint({ ...common, path: "/user/logout/:name", input: NamedLogoutInput }),
  ];
}

function signInByForm(users: UserService, call: Call<Static<typeof LoginInput>>): Promise<SignedIn> {
  const { username = call.input.user_name ?? "", password = "", ticket = "", code = "" } = call.input;
  if (ticket !== "") return users.signInByCode({ ticket, code, ...originOf(call) });
  if (username === "" || password === "") throw new AppError("invalid", "username or password are missing.");
  return users.signIn({ ...call.input, username, password, ...originOf(call) });
}

/** Sends a browser back to the form with the reason, or to the page for the code. A program gets the error. */
function backToForm(call: Call<unknown>, error: unknown): Answer<string> {
  if (call.client.browser && !call.client.maySignIn) return { redirect: `${LOGIN_PATH}?error=foreign` };
  if (call.client.browser && error instanceof CodeNeeded) return codePage(error);
  if (call.client.browser && isAppError(error, "denied", "limited", "invalid", "deadline"))
    return { redirect: `${LOGIN_PATH}?error=${error.code}` };
  throw error;
}

/**
 * `AppError("denied")` if a page of another site made the call, because that page could sign in its reader as another
 * user.
 */
function originOf({ client, principal }: Call<unknown>): Pick<SignInRequest, "remote" | "replaced" | "traceparent"> {
  if (!client.maySignIn) throw new AppError("denied", "A page or link of another site signs nobody in here.");
  // Only a browser replaces its session. A program may keep using its older session in addition to the new one.
  const replaced = client.browser ? client.session : undefined;
  return { remote: client.remote, replaced, traceparent: principal.traceparent };
}

function cookieOf({ session, lastingMs }: SignedIn): { readonly id: string; readonly lastingMs?: number } {
  return lastingMs === undefined ? { id: session } : { id: session, lastingMs };
}
