import { type Static, Type } from "typebox";
import { ChangedSignInPolicyReply, SignInPolicyChange, SignInPolicyReply } from "../../../../common/api/users.ts";
import { HTTP_SMALL_BODY_MAX_BYTES } from "../../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { PolicyChange, SignInPolicy } from "./pending-requirements.ts";
import type { ChangedPolicy } from "./policy-service.ts";
import type { UserService } from "../service.ts";

const PATH = "/admin/signinpolicy";

/** Sign-in requirements of a tenant besides a password. */
export function policyRoutes(users: UserService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: PATH,
      permission: "users:read",
      summary: "Whom a second factor is required of, and whether first passwords are for once",
      input: Type.Object({}),
      output: SignInPolicyReply,
      handler: async ({ principal }) => ({ message: told(await users.signInPolicy.get(principal)) }),
    }),
    endpoint({
      method: "GET",
      path: `${PATH}/preview`,
      permission: "perms:read",
      summary:
        "The policy as these members would leave it, and which tokens and Basic users would stop; changes nothing",
      input: SignInPolicyChange,
      output: ChangedSignInPolicyReply,
      handler: async ({ principal, input }) => ({
        message: toldChange(await users.signInPolicy.preview(principal, changeIn(input))),
      }),
    }),
    endpoint({
      method: "POST",
      path: PATH,
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "perms:write",
      summary:
        "Change the members that are sent; users who lack what it requires can do nothing else until they have it",
      input: SignInPolicyChange,
      output: ChangedSignInPolicyReply,
      body: "json",
      handler: async ({ principal, input }) => ({
        message: toldChange(await users.signInPolicy.set(principal, changeIn(input))),
      }),
    }),
  ];
}

function changeIn({ secondfactor, firstpasswords }: Static<typeof SignInPolicyChange>): PolicyChange {
  return { secondFactor: secondfactor, firstPasswords: firstpasswords };
}

function toldChange({ stops, ...policy }: ChangedPolicy) {
  const { users, userCount, tokens, tokenCount } = stops;
  return {
    ...told(policy),
    stops: { users: [...users], usercount: userCount, tokens: [...tokens], tokencount: tokenCount },
  };
}

function told({ secondFactor, firstPasswords }: SignInPolicy) {
  return { secondfactor: secondFactor, firstpasswords: firstPasswords };
}
