import type { SecretBox } from "../../../secrets/index.ts";
import { Credentials, type CredentialsDependencies } from "./credentials.ts";
import { FactorStore } from "../second-factor/store.ts";
import { SecondFactors } from "../second-factor/second-factor.ts";
import { Sessions } from "../sessions/sessions.ts";
import { SessionStore } from "../store.ts";
import { Tickets } from "../second-factor/tickets.ts";
import { Tokens } from "../sessions/tokens.ts";

interface SignInDependencies extends Omit<CredentialsDependencies, "sessions" | "factors" | "tickets"> {
  /** Seals second factors and tickets; absent: enrolling a second factor is not possible. */
  readonly secrets: SecretBox | undefined;
}

/** Parts of the user service that verify users, and that keep sessions and tokens. */
interface SignInParts {
  readonly sessionStore: SessionStore;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly factors: SecondFactors;
  readonly credentials: Credentials;
}

export function signInParts({ secrets, ...dependencies }: SignInDependencies): SignInParts {
  const { runtime, stores, users } = dependencies;
  const sessionStore = new SessionStore(stores, runtime.clock);
  const factors = new SecondFactors({ store: new FactorStore(stores, users), runtime, secrets });
  const tickets = secrets && new Tickets(secrets, runtime.clock);
  return {
    sessionStore,
    sessions: new Sessions({ runtime, store: sessionStore }),
    tokens: new Tokens({ stores, runtime }),
    factors,
    credentials: new Credentials({ ...dependencies, sessions: sessionStore, factors, tickets }),
  };
}
