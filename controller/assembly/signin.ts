import { isAppError } from "../../common/errors.ts";
import type { GroupService } from "../areas/groups/index.ts";
import type { RunAccess } from "../areas/jobs/index.ts";
import type { Principal } from "../areas/permissions/index.ts";
import type { TenantGate } from "../areas/tenants/index.ts";
import type { SignIn } from "../http/calls/signin.ts";

interface SignInParts {
  readonly users: SignIn & Required<Pick<SignIn, "byKnownSession">>;
  readonly groups: Pick<GroupService, "onChange">;
  readonly access: RunAccess;
  readonly gate: TenantGate;
}

/** Refuses every sign-in at a deleted tenant, also for users who are still cached. */
export function signInOf({ users, groups, access, gate }: SignInParts): SignIn {
  const present = async (found: Promise<Principal | undefined>): Promise<Principal | undefined> => {
    try {
      const principal = await found;
      return principal && (await gate.isOpen(principal.tenant)) ? principal : undefined;
    } catch (error) {
      // The stores with the user's data are closed.
      if (isAppError(error, "not_found")) return undefined;
      throw error;
    }
  };
  return {
    bySession: async (session, traceparent) => present(users.bySession(session, traceparent)),
    byKnownSession: (session, call) => {
      const principal = users.byKnownSession(session, call);
      return principal && gate.isKnownOpen(principal.tenant) ? principal : undefined;
    },
    byPassword: async (credentials, traceparent) => present(users.byPassword(credentials, traceparent)),
    byToken: async (token, traceparent) => present(users.byToken(token, traceparent)),
    byRun: async (token, traceparent) => present(access.byRun(token, traceparent)),
    onChange: (listener) => {
      users.onChange(listener);
      groups.onChange(listener);
    },
  };
}
