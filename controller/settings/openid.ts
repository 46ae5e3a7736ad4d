import type { AppError } from "../../common/errors.ts";

/** The OpenID provider of an installation. Users of one tenant sign in with it. */
export interface OpenIdSettings {
  readonly issuer: URL;
  readonly clientId: string;
  /** Absent: a public client, which authenticates by PKCE only. */
  readonly clientSecret: string | undefined;
  /** Name of the provider on the sign-in page. */
  readonly name: string;
  readonly tenant: string;
  /** URL of this installation for browsers, without a path. */
  readonly publicUrl: URL;
  readonly scopes: readonly string[];
  readonly usernameClaim: string;
  readonly groupsClaim: string;
  /** Maps groups of the provider to full names of groups here. */
  readonly groups: ReadonlyMap<string, readonly string[]>;
  readonly createUsers: boolean;
}

export const OPENID_SETTINGS = [
  {
    name: "openid_issuer",
    meaning: "Issuer URL of an OpenID provider whose users may sign in; https, or http on this machine",
    default: "none: by password only",
  },
  { name: "openid_client_id", meaning: "This installation's id at the provider", default: "required with an issuer" },
  {
    name: "openid_client_secret",
    meaning: "Its secret there; better as a variable than in the file",
    default: "none: a public client",
    isSecret: true,
  },
  {
    name: "openid_public_url",
    meaning:
      "Where browsers reach this installation, as in `https://odp.example.com`; the provider is to know `/user/openid/callback` there",
    default: "required with an issuer",
  },
  { name: "openid_name", meaning: "What the sign-in page calls the provider", default: "single sign-on" },
  { name: "openid_tenant", meaning: "The tenant whose users the provider's users are", default: "the first tenant" },
  { name: "openid_scopes", meaning: "Scopes that are asked for besides `openid`", default: "profile" },
  {
    name: "openid_username_claim",
    meaning: "Claim that names a user who is made; who is known is found by issuer and subject",
    default: "preferred_username",
  },
  { name: "openid_groups_claim", meaning: "Claim that lists the user's groups at the provider", default: "groups" },
  {
    name: "openid_groups",
    meaning:
      "Which groups here those of the provider stand for, as in `ops=/operators,dev=/authors`; set at each sign-in, and taken away by it",
    default: "none",
  },
  {
    name: "openid_create_users",
    meaning: "1 makes a user for an account that nobody here has, 0 refuses it until an administrator links it",
    default: "0",
  },
] as const;

type Name = (typeof OPENID_SETTINGS)[number]["name"];

export interface GivenOpenId {
  /** Text of a setting; empty if it is not set. */
  readonly text: (name: Name) => string;
  readonly wrong: (name: Name, why: string) => AppError;
  readonly firstTenant: string;
}

/** `undefined` without an issuer. */
export function openIdSettings(given: GivenOpenId): OpenIdSettings | undefined {
  const { text, wrong, firstTenant } = given;
  if (text("openid_issuer") === "") return undefined;
  const required = (name: Name): string => {
    if (text(name) === "") throw wrong(name, "openid_issuer is set, so it is needed");
    return text(name);
  };
  const publicUrl = webAddress(given, "openid_public_url", required("openid_public_url"));
  if (publicUrl.pathname !== "/" || publicUrl.search !== "")
    throw wrong("openid_public_url", "it must have no path, as in https://odp.example.com");
  return {
    issuer: secureAddress(given, text("openid_issuer")),
    clientId: required("openid_client_id"),
    clientSecret: text("openid_client_secret") || undefined,
    name: text("openid_name") || "single sign-on",
    tenant: text("openid_tenant") || firstTenant,
    publicUrl,
    scopes: [...new Set(["openid", ...words(text("openid_scopes") || "profile")])],
    usernameClaim: text("openid_username_claim") || "preferred_username",
    groupsClaim: text("openid_groups_claim") || "groups",
    groups: groupsIn(given, text("openid_groups")),
    createUsers: flag(given, "openid_create_users"),
  };
}

function webAddress({ wrong }: GivenOpenId, name: Name, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.hash !== "")
    throw wrong(name, `it must be an address such as https://login.example.com, not ${text}`);
  return url;
}

/** Without TLS, anyone on the network path to the provider could forge identities. */
function secureAddress(given: GivenOpenId, text: string): URL {
  const url = webAddress(given, "openid_issuer", text);
  if (url.protocol !== "https:" && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname))
    throw given.wrong("openid_issuer", "it must begin with https://, but on this machine");
  return url;
}

function words(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** Group names of the provider may have commas and equal signs, as in directories. Names here begin with `/`. */
function groupsIn({ wrong }: GivenOpenId, text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  let rest = text.trim();
  while (rest !== "") {
    const [whole = "", theirs, ours] = /^(.+?)=(\/[^,]*?)\s*(?:,\s*|$)/.exec(rest) ?? [];
    if (theirs === undefined || ours === undefined || ours === "/")
      throw wrong("openid_groups", `it must be pairs such as ops=/operators, separated by commas, not ${rest}`);
    if (ours === "/administrators" || ours === "/everyone")
      throw wrong("openid_groups", `nobody is put into ${ours}: its members come by themselves`);
    found.set(theirs, [...(found.get(theirs) ?? []), ours]);
    rest = rest.slice(whole.length);
  }
  return found;
}

function flag({ text, wrong }: GivenOpenId, name: Name): boolean {
  const value = text(name) || "0";
  if (value !== "0" && value !== "1") throw wrong(name, `it must be one of 0, 1, not ${value}`);
  return value === "1";
}
