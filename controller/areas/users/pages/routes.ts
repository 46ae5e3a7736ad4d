import { Type } from "typebox";
import {
  ChangePasswordInput,
  EndSessionsInput,
  LoginPageInput,
  OwnPasswordInput,
  SecondFactorCodeInput,
} from "../../../../common/api/users.ts";
import { isAppError } from "../../../../common/errors.ts";
import { endpoint, type Answer, type Endpoint } from "../../../http/interface/endpoint.ts";
import { accountPage, confirmPage, enrolPage, recoveryPage } from "./account-pages.ts";
import { requireSignedIn } from "../directory/routes.ts";
import type { UserService } from "../service.ts";

const PATH = "/user/account";
const FACTOR_PATH = `${PATH}/secondfactor`;

const page = {
  permission: "public",
  output: Type.String(),
  bare: { page: "The page of one's account", redirect: "Where to go on, or back with the reason", only: true },
} as const;

/** Pages where people manage their sign-in; programs use `/user/secondfactor`. */
export function accountRoutes(users: UserService, provider: string | undefined): readonly Endpoint[] {
  return [
    endpoint({
      ...page,
      method: "GET",
      path: PATH,
      summary: "Page of one's own sign-in: password, sessions, second factor, account at the OpenID provider",
      input: LoginPageInput,
      handler: async ({ principal, input: { error }, client: { session } }) => {
        if (principal.user === "") return { redirect: "/user/login" };
        const recoveryCodes = await users.secondFactors.codesLeft(principal);
        const isLinked = (await users.providers.own(principal)) !== undefined;
        const linking = provider === undefined ? undefined : { name: provider, isLinked };
        const sessions = await users.signIns.sessions(principal, session);
        return accountPage({
          user: principal.user,
          owes: principal.owes,
          error,
          sessions,
          recoveryCodes,
          provider: linking,
        });
      },
    }),
    ...passwordRoutes(users),
    sessionsRoute(users),
    ...factorPages(users),
  ];
}

function sessionsRoute(users: UserService): Endpoint {
  return endpoint({
    ...page,
    method: "POST",
    path: `${PATH}/sessions`,
    signedIn: true,
    summary: "Ends one of one's sessions, or all others, from their page",
    input: EndSessionsInput,
    body: "form",
    handler: async ({ principal, input: { id = "", password }, client: { session } }) => {
      requireSignedIn(principal);
      return back(async () => {
        if (id === "") await users.signIns.endOtherSessions(principal, session, password);
        else await users.signIns.endSession(principal, id, password);
        return { redirect: PATH };
      });
    },
  });
}

function passwordRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/user/password",
      permission: "public",
      signedIn: true,
      summary: "Change one's own password; takes the present one, and ends all sessions and tokens",
      input: ChangePasswordInput,
      output: Type.String(),
      body: "json",
      handler: async ({ principal, input: { password, newpassword } }) => {
        requireSignedIn(principal);
        await users.changeOwnPassword(principal, password, newpassword);
        return { message: "" };
      },
    }),
    endpoint({
      ...page,
      method: "POST",
      path: `${PATH}/password`,
      signedIn: true,
      summary: "Changes one's own password from its page",
      input: ChangePasswordInput,
      body: "form",
      handler: async ({ principal, input: { password, newpassword } }) => {
        requireSignedIn(principal);
        return back(async () => {
          await users.changeOwnPassword(principal, password, newpassword);
          return { redirect: "/user/login" };
        });
      },
    }),
  ];
}

function factorPages(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      ...page,
      method: "POST",
      path: FACTOR_PATH,
      signedIn: true,
      summary: "Page that shows a new second factor to an authenticator, once",
      input: OwnPasswordInput,
      body: "form",
      handler: async ({ principal, input: { password } }) => {
        requireSignedIn(principal);
        return back(async () => enrolPage(await users.secondFactors.begin(principal, password)));
      },
    }),
    endpoint({
      ...page,
      method: "POST",
      path: `${FACTOR_PATH}/confirm`,
      signedIn: true,
      summary: "Page that turns one's second factor on and shows the recovery codes, once",
      input: SecondFactorCodeInput,
      body: "form",
      handler: async ({ principal, input: { code } }) => {
        requireSignedIn(principal);
        return back(async () => {
          try {
            return recoveryPage(await users.secondFactors.confirm(principal, code));
          } catch (error) {
            if (isAppError(error, "invalid")) return confirmPage();
            throw error;
          }
        });
      },
    }),
    endpoint({
      ...page,
      method: "POST",
      path: `${FACTOR_PATH}/remove`,
      signedIn: true,
      summary: "Turns one's second factor off from its page",
      input: OwnPasswordInput,
      body: "form",
      handler: async ({ principal, input: { password } }) => {
        requireSignedIn(principal);
        return back(async () => {
          await users.secondFactors.remove(principal, password);
          return { redirect: PATH };
        });
      },
    }),
  ];
}

/** Sends an error back to the page it came from. */
async function back(work: () => Promise<Answer<string>>): Promise<Answer<string>> {
  try {
    return await work();
  } catch (error) {
    if (isAppError(error, "denied", "invalid", "limited", "conflict", "not_found", "unavailable"))
      return { redirect: `${PATH}?error=${error.code}` };
    throw error;
  }
}
