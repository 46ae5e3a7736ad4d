import { Type } from "typebox";
import { PASSWORD_MIN_CHARACTERS, TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TOKEN_SCOPES_MAX } from "../limits.ts";
import { contentIn, having, NOT_EMPTY, oneOfMembers, OWN_PATH, PLAIN_TEXT, USER_NAME } from "./documented.ts";
import { Revision } from "./revision.ts";

const Text = (maxLength: number) => Type.String({ maxLength });

const Code = Type.Optional(
  Type.String({ maxLength: 64, description: "One-time password or recovery code, for a user with a second factor" }),
);

/** Sign-in for programs: query, form or JSON. */
export const SignInInput = Type.Object({
  company: Type.Optional(
    Type.String({ maxLength: 48, description: "Name of the tenant. Absent: the installation's only one" }),
  ),
  username: Type.String({ minLength: 1, maxLength: 200, documented: PLAIN_TEXT, description: "Name of the user" }),
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "Password of the user" }),
  code: Code,
  remember: Type.Optional(Type.Boolean({ description: "True: a session that outlives the browser" })),
});

/** The session id, which is also set as cookie. */
export const SignInOutput = Type.String();

/** Sign-in for people. The HTML form of existing portals sends the name as `user_name`. */
export const LoginInput = Type.Object(
  {
    company: Type.Optional(
      Type.String({ maxLength: 48, description: "Name of the tenant. Absent: the installation's only one" }),
    ),
    username: Type.Optional(Type.String({ maxLength: 200, documented: NOT_EMPTY, description: "Name of the user" })),
    user_name: Type.Optional(
      Type.String({ maxLength: 200, documented: NOT_EMPTY, description: "The same as username" }),
    ),
    password: Type.Optional(
      Type.String({ maxLength: 4_096, documented: NOT_EMPTY, description: "Password of the user" }),
    ),
    code: Code,
    ticket: Type.Optional(
      Type.String({
        maxLength: 8_000,
        description: "Of the page that asks for the code: stands for name and password",
        documented: NOT_EMPTY,
      }),
    ),
    remember: Type.Optional(Type.Boolean({ description: "True: a session that outlives the browser" })),
  },
  { documented: oneOfMembers(["ticket"], ["username", "password"], ["user_name", "password"]) },
);

export const LoginPageInput = Type.Object({
  error: Type.Optional(Type.String({ maxLength: 50, description: "Code of the error that the page explains" })),
});

export const LogoutInput = Type.Object({
  name: Type.Optional(Type.String({ maxLength: 200, description: "Name of the user; without effect" })),
});

export const NamedLogoutInput = Type.Object({
  name: Type.String({ maxLength: 4_096, description: "Name of the user; without effect" }),
});

/** As the sign-in for programs, but redirects a browser to `redirect`, a path of this site, or to the start page. */
export const GoAuthInput = Type.Object({
  ...SignInInput.properties,
  redirect: Type.Optional(
    Type.String({
      maxLength: 1_000,
      documented: OWN_PATH,
      description: "Path of a page of this site to go to; the user's start page when absent",
    }),
  ),
});

/** The password is the raw body. */
export const PasswordCheckInput = Type.Object({});

/** Empty: the password is acceptable. Otherwise the reason why not. */
export const PasswordCheckReply = Type.String();

export const HomeInput = Type.Object(
  {
    home: Type.Optional(
      Type.String({
        description: "Path of a page of this site; empty or absent: none of one's own",
        documented: OWN_PATH,
      }),
    ),
  },
  { documented: contentIn("home") },
);

export const UserTreeInput = Type.Object({
  fullname: Type.Optional(Type.String({ description: "Path of an organisation or a user; / or absent: all" })),
});

const DetailMembers = {
  auth: Type.Optional(Type.String({ maxLength: 64, description: "Way to sign in that clients note; without effect" })),
  grpset: Type.Optional(
    Type.Array(Text(1_000), {
      maxItems: 256,
      description: "Full names of the groups of the user, in place of the present ones",
    }),
  ),
  lastname: Type.Optional(Type.String({ maxLength: 256, description: "Family name" })),
  firstname: Type.Optional(Type.String({ maxLength: 256, description: "Given name" })),
  gender: Type.Optional(Type.String({ maxLength: 64, description: "Gender, as the client writes it" })),
  address: Type.Optional(Type.String({ maxLength: 1_000, description: "Postal address" })),
  email: Type.Optional(Type.Array(Text(256), { maxItems: 32, description: "Mail addresses" })),
  imaccount: Type.Optional(Type.String({ maxLength: 256, description: "Account of a messenger" })),
  wechat: Type.Optional(Type.String({ maxLength: 256, description: "Another name of imaccount" })),
  mobile: Type.Optional(Type.Array(Text(256), { maxItems: 32, description: "Numbers of mobile phones" })),
  telephone: Type.Optional(Type.Array(Text(256), { maxItems: 32, description: "Numbers of telephones" })),
  remark: Type.Optional(Type.String({ maxLength: 4_000, description: "Remark for people" })),
  status: Type.Optional(
    Type.Integer({
      minimum: -2_147_483_648,
      maximum: 2_147_483_647,
      description: "Number to which clients give a meaning; without effect",
    }),
  ),
  isadmin: Type.Optional(Type.Boolean({ description: "True: the user is an administrator of the tenant" })),
  isactive: Type.Optional(
    Type.Boolean({ description: "False: the user, or each user below the organisation, cannot sign in" }),
  ),
  config: Type.Optional(
    Type.Record(Text(256), Text(4_000), {
      maxProperties: 64,
      description:
        "The client gives these their meaning, but for time_zone: the zone in which statements of the user count days",
    }),
  ),
};

const NEW_NODES = [{ properties: { otype: { enum: ["org"] } } }, having("passwd")];

export const UserCreateInput = Type.Object(
  {
    parent: Type.String({
      minLength: 1,
      maxLength: 8_000,
      description: "Path or id of an organisation; / is the root",
    }),
    username: Type.String({ maxLength: 200, documented: USER_NAME, description: "Name of the user or organisation" }),
    passwd: Type.Optional(
      Type.String({
        maxLength: 4_096,
        description: "Required for a user; ignored for an organisation",
        documented: { minLength: PASSWORD_MIN_CHARACTERS },
      }),
    ),
    otype: Type.Union([Type.Literal("usr"), Type.Literal("org")], { description: "usr: a user; org: an organisation" }),
    ...DetailMembers,
  },
  { documented: { anyOf: NEW_NODES } },
);

const UserId = Type.String({ maxLength: 20, description: "Id of the user or organisation" });

export const UserUpdateInput = Type.Object({
  userid: UserId,
  passwd: Type.Optional(
    Type.String({
      maxLength: 4_096,
      documented: { minLength: PASSWORD_MIN_CHARACTERS },
      description: "New password; ends all sessions and tokens of the user",
    }),
  ),
  password: Type.Optional(
    Type.String({ maxLength: 4_096, description: "The caller's present one; required with passwd for oneself" }),
  ),
  ...DetailMembers,
});

export const UserIdInput = Type.Object({ userid: UserId });

export const UserMoveInput = Type.Object({
  userid: UserId,
  to: Type.String({ description: "Id or path of the organisation to move to" }),
});

export const UserIdReply = Type.String({ description: "19 or 20 decimal digits" });

export const UserNodeReply = Type.Object({
  id: UserIdReply,
  username: Type.String({ description: "/ for the root" }),
  fullname: Type.String({ description: "Path from the root" }),
  parent: Type.String({ description: "Path of the organisation it is in; empty for the root" }),
  otype: Type.String({ description: "usr or org" }),
  isadmin: Type.Optional(Type.Boolean({ description: "True: an administrator of the tenant" })),
  isactive: Type.Optional(
    Type.Boolean({ description: "False: the user, or each user below the organisation, cannot sign in" }),
  ),
  status: Type.Optional(Type.Integer({ description: "Number to which clients give a meaning" })),
  firstname: Type.Optional(Type.String({ description: "Given name" })),
  lastname: Type.Optional(Type.String({ description: "Family name" })),
  gender: Type.Optional(Type.String({ description: "Gender, as the client writes it" })),
  address: Type.Optional(Type.String({ description: "Postal address" })),
  imaccount: Type.Optional(Type.String({ description: "Account of a messenger" })),
  wechat: Type.Optional(Type.String({ description: "The same as imaccount" })),
  remark: Type.Optional(Type.String({ description: "Remark for people" })),
  auth: Type.Optional(Type.String({ description: "Way to sign in that clients noted" })),
  email: Type.Optional(Type.Array(Type.String(), { description: "Mail addresses" })),
  mobile: Type.Optional(Type.Array(Type.String(), { description: "Numbers of mobile phones" })),
  telephone: Type.Optional(Type.Array(Type.String(), { description: "Numbers of telephones" })),
  grpset: Type.Optional(Type.Array(Type.String(), { description: "Full names of the groups of the user" })),
  config: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Values to which clients give a meaning, but for time_zone",
    }),
  ),
  revision: Type.Optional(Revision),
  nodes: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: "Organisations, then users, by name; nodes of this same form",
  }),
});

export const EndSessionInput = Type.Object({
  id: Type.String({ pattern: "^[0-9a-f]{64}$", description: "Id of the session, as the list of sessions has it" }),
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The caller's present password" }),
});

/** Sent by the page of the user's own account. */
export const EndSessionsInput = Type.Object({
  id: Type.Optional(
    Type.String({ description: "One of one's sessions; absent or empty: all but this one", maxLength: 64 }),
  ),
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The caller's present password" }),
});

export const OwnIdInput = Type.Object({
  id: Type.String({
    pattern: "^[0-9a-f]{64}$",
    description: "Id of one of the caller's own tokens, as their list has it",
  }),
});

export const SessionsReply = Type.Array(
  Type.Object({
    id: Type.String({ description: "Names the session; it does not sign in" }),
    createdMs: Type.Integer({ description: "milliseconds since 1970" }),
    remote: Type.String({ description: "Address it was made from" }),
    current: Type.Boolean({ description: "This call came by it" }),
  }),
);

const SCOPE = { pattern: "^([a-z]+:(\\*|read|write|run)|\\*:(read|write|run))$" };

export const TokenInput = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 200, description: "Name of the token, for people" }),
  scopes: Type.Array(Type.String({ maxLength: 100, documented: SCOPE }), {
    minItems: 1,
    maxItems: TOKEN_SCOPES_MAX,
    description: "Grants such as hosts:read, hosts:* or *:read, each within those of its maker",
  }),
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: TOKEN_DAYS_MAX,
      default: TOKEN_DAYS_DEFAULT,
      description: "days that it holds",
    }),
  ),
});

export const TokenReply = Type.String({ description: "The token, told once: for Bearer, or as password for Basic" });

export const TokensReply = Type.Array(
  Type.Object({
    id: Type.String({ description: "Names the token; it does not sign in" }),
    name: Type.String({ description: "Name of the token" }),
    scopes: Type.Array(Type.String(), { description: "Grants of the token" }),
    createdMs: Type.Integer({ description: "milliseconds since 1970" }),
    expiresMs: Type.Integer({ description: "milliseconds since 1970" }),
    remote: Type.String({ description: "Address it was made from" }),
  }),
);

export const OwnPasswordInput = Type.Object({
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The caller's present password" }),
});

export const ChangePasswordInput = Type.Object({
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The present one" }),
  newpassword: Type.String({ minLength: 1, maxLength: 4_096, description: "The new password" }),
});

export const SecondFactorReply = Type.Object({
  active: Type.Boolean({ description: "True: signing in takes a second factor" }),
  recoverycodes: Type.Integer({ description: "How many are left" }),
});

export const NewSecondFactorReply = Type.Object({
  uri: Type.String({ description: "otpauth://totp/…, for a QR code; told once" }),
  secret: Type.String({ description: "The same secret in base32, to be typed" }),
});

const secondfactor = Type.Union([Type.Literal("optional"), Type.Literal("administrators"), Type.Literal("everybody")], {
  description: "Whom a second factor is required of; administrators are those who may change groups",
});
const firstpasswords = Type.Union([Type.Literal("lasting"), Type.Literal("once")], {
  description: "`once`: a password set by somebody else signs in to its change only, and for seven days",
});

export const SignInPolicyReply = Type.Object({ secondfactor, firstpasswords });

const stops = Type.Object(
  {
    users: Type.Array(Type.String(), { description: "Names of users whose Basic sign-in is refused" }),
    usercount: Type.Integer({ description: "How many there are; `users` names the first of them" }),
    tokens: Type.Array(
      Type.Object({
        user: Type.String({ description: "Name of the user" }),
        name: Type.String({ description: "Name of the token" }),
      }),
      {
        description: "Tokens that are refused",
      },
    ),
    tokencount: Type.Integer({ description: "How many there are; `tokens` names the first of them" }),
  },
  { description: "Programs that stop until their user has done what the policy requires, by this change" },
);

export const ChangedSignInPolicyReply = Type.Object({ secondfactor, firstpasswords, stops });

export const SignInPolicyChange = Type.Object({
  secondfactor: Type.Optional(secondfactor),
  firstpasswords: Type.Optional(firstpasswords),
});

export const SecondFactorCodeInput = Type.Object({
  code: Type.String({ minLength: 1, maxLength: 64, description: "One-time password that the authenticator shows" }),
});

export const RecoveryCodesReply = Type.Array(Type.String(), { description: "Good once each; told once" });
