import { POLICY_STOPS_SHOWN_MAX } from "../../../common/limits.ts";
import type { Principal } from "../permissions/index.ts";
import type { Activity } from "./activity.ts";
import type { DirectoryReader } from "./directory-reader.ts";
import type { Duties, SignInPolicy } from "./duties.ts";
import type { UserPowers } from "./powers.ts";
import type { UserStore } from "./store.ts";
import type { Tokens } from "./tokens.ts";

/** What a policy stops: of each list at most `POLICY_STOPS_SHOWN_MAX`, beside how many there are. */
export interface PolicyStops {
  /** Names of users whose Basic sign-in is refused until they have done what the policy requires. */
  readonly users: readonly string[];
  readonly userCount: number;
  /** Tokens that are refused until then. */
  readonly tokens: readonly { readonly user: string; readonly name: string }[];
  readonly tokenCount: number;
}

interface Dependencies {
  readonly activity: Activity;
  readonly duties: Pick<Duties, "under">;
  readonly users: Pick<UserStore, "pages">;
  readonly powers: Pick<UserPowers, "of">;
  readonly tokens: Pick<Tokens, "namesIn">;
  readonly reader: Pick<DirectoryReader, "seenNames">;
}

const NOTHING: PolicyStops = { users: [], userCount: 0, tokens: [], tokenCount: 0 };

/** Programs that work under a sign-in policy and stop under another one. */
export class StopsByPolicy {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Of those users that the principal may see. */
  async between(
    principal: Principal,
    { before, after }: { readonly before: SignInPolicy; readonly after: SignInPolicy },
  ): Promise<PolicyStops> {
    // A first password is one by the policy of the moment when it is set: the switch itself makes none.
    if (before.secondFactor === after.secondFactor) return NOTHING;
    const { activity, duties, users, powers, tokens, reader } = this.#with;
    const sees = await reader.seenNames(principal);
    const tokensOf = await tokens.namesIn(principal.tenant);
    const stopped: string[] = [];
    for await (const page of users.pages(principal.tenant)) {
      for (const { record } of page) {
        if (!sees(record.username) || !(await activity.isActive(record))) continue;
        const given = await powers.of(record);
        if (given === undefined || duties.under(before, record, given) !== undefined) continue;
        if (duties.under(after, record, given) !== undefined) stopped.push(record.username);
      }
    }
    const names = stopped.flatMap((user) => (tokensOf.get(user) ?? []).map((name) => ({ user, name })));
    return {
      users: stopped.slice(0, POLICY_STOPS_SHOWN_MAX),
      userCount: stopped.length,
      tokens: names.slice(0, POLICY_STOPS_SHOWN_MAX),
      tokenCount: names.length,
    };
  }
}
