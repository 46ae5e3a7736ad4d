import { generateKeyPairSync, randomUUID, sign, type KeyObject } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export type Claims = Readonly<Record<string, unknown>>;

interface SigningKey {
  readonly kid: string;
  readonly key: KeyObject;
}

/** A real OpenID provider on its own port. Its users need no password. */
export interface TestProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Claims by account. Accounts without claims may sign in as well. */
  readonly accounts: Map<string, Claims>;
  /** Replaces the ID tokens that it sends; `undefined`: they are sent unchanged. */
  forge: ((claims: Claims) => string) | undefined;
  /** True: connections are closed without an answer. */
  isAway: boolean;
  /** Received requests, by method and path. */
  readonly requests: string[];
  /** All tokens that it sent. */
  readonly tokens: string[];
  /** Signs claims as the provider does now, or with another key under the same name. */
  sign(claims: Claims, key?: KeyObject): string;
  /** From now on it signs with a new key, and publishes only the new one. */
  rotate(): void;
}

export async function openTestProvider(callback: string): Promise<TestProvider> {
  let handle: RequestListener;
  let current: SigningKey;
  const server = createServer((request, response) => {
    state.requests.push(`${request.method} ${new URL(request.url ?? "", "http://provider").pathname}`);
    if (state.isAway) request.socket.destroy();
    else handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state: TestProvider = {
    issuer,
    clientId: "odp",
    clientSecret: "the secret of a client",
    accounts: new Map(),
    forge: undefined,
    isAway: false,
    requests: [],
    tokens: [],
    sign: (claims, key = current.key) => signed(claims, { kid: current.kid, key }),
    rotate() {
      current = newKey();
      const answer = providerOf(state, callback, current).callback();
      handle = (request, response) => void answer(request, response);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  state.rotate();
  return state;
}

function providerOf(state: TestProvider, callback: string, { kid, key }: SigningKey): Provider {
  const { issuer, clientId, clientSecret, accounts } = state;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [callback],
        id_token_signed_response_alg: "ES256",
      },
    ],
    jwks: { keys: [{ ...key.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" } as never] },
    cookies: { keys: ["a key of cookies"] },
    claims: { openid: ["sub"], profile: ["preferred_username", "given_name", "family_name", "email", "groups"] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true } },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...accounts.get(accountId) }),
    }),
  });
  provider.use(async (context, next) => {
    await next();
    const body = context.body as { access_token?: string; id_token?: string } | undefined;
    if (context.path !== "/token" || body?.id_token === undefined) return;
    if (state.forge) body.id_token = state.forge(claimsOf(body.id_token));
    state.tokens.push(body.id_token, ...(body.access_token === undefined ? [] : [body.access_token]));
  });
  return provider;
}

/** Claims of a token, without verification. */
function claimsOf(token: string): Claims {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Claims;
}

function newKey(): SigningKey {
  return { kid: randomUUID(), key: foreignKey() };
}

export function foreignKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function signed(claims: Claims, { kid, key }: SigningKey): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "ES256", kid })}.${part(claims)}`;
  return `${text}.${sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}
