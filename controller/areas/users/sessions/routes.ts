import { Type, type Static } from "typebox";
import {
  EndSessionInput,
  OwnIdInput,
  SessionsReply,
  TokenInput,
  TokenReply,
  TokensReply,
  UserIdInput,
} from "../../../../common/api/users.ts";
import { TOKEN_DAYS_DEFAULT } from "../../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import { requireSignedIn } from "../directory/routes.ts";
import type { UserService } from "../service.ts";

/** Sessions and tokens: the caller's own, which need no permission, and those of other users. */
export function signInsRoutes(users: UserService): readonly Endpoint[] {
  return [...sessionRoutes(users), ...tokenRoutes(users), ...othersRoutes(users)];
}

function sessionRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/user/sessions",
      permission: "public",
      signedIn: true,
      summary: "One's own open sessions",
      input: Type.Object({}),
      output: SessionsReply,
      handler: async ({ principal, client: { session } }) => {
        requireSignedIn(principal);
        return { message: [...(await users.signIns.sessions(principal, session))] };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/user/sessions/:id",
      permission: "public",
      signedIn: true,
      summary: "End one of one's own sessions; takes the password",
      input: EndSessionInput,
      output: Type.String(),
      body: "json",
      handler: async ({ principal, input: { id, password } }) => {
        requireSignedIn(principal);
        await users.signIns.endSession(principal, id, password);
        return { message: "" };
      },
    }),
  ];
}

function tokenRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/user/tokens",
      permission: "public",
      signedIn: true,
      summary: "One's own tokens, without what signs in",
      input: Type.Object({}),
      output: TokensReply,
      handler: async ({ principal }) => {
        requireSignedIn(principal);
        return { message: (await users.signIns.tokens(principal)) as Static<typeof TokensReply> };
      },
    }),
    endpoint({
      method: "POST",
      path: "/user/tokens",
      permission: "public",
      signedIn: true,
      summary: "Make a token for a program; answers it once",
      input: TokenInput,
      output: TokenReply,
      body: "json",
      handler: async ({ principal, input: { name, scopes, days = TOKEN_DAYS_DEFAULT }, client: { remote } }) => {
        requireSignedIn(principal);
        return { message: await users.signIns.makeToken(principal, { name, scopes, days, remote }) };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/user/tokens/:id",
      permission: "public",
      signedIn: true,
      summary: "Revoke one of one's own tokens",
      input: OwnIdInput,
      output: Type.String(),
      handler: async ({ principal, input: { id } }) => {
        requireSignedIn(principal);
        await users.signIns.removeToken(principal, id);
        return { message: "" };
      },
    }),
  ];
}

function othersRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/admin/users/:userid/sessions",
      permission: "users:read",
      summary: "Open sessions of a user",
      input: UserIdInput,
      output: SessionsReply,
      handler: async ({ principal, input: { userid } }) => ({
        message: [...(await users.signIns.sessionsOf(principal, userid))],
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/admin/users/:userid/sessions",
      permission: "users:write",
      summary: "End all sessions of a user and revoke all tokens; answers how many there were",
      input: UserIdInput,
      output: Type.Integer(),
      handler: async ({ principal, input: { userid } }) => ({ message: await users.signIns.endAll(principal, userid) }),
    }),
  ];
}
