// Generated from deploy/docs/openapi.json by `npm run gen`. Do not edit.

import type { Content, Upload } from "../content.ts";

/** Every operation of the HTTP interface by its `operationId`. */
export interface Operations {
  /**
   * Start page, or the sign-in page for those who are not signed in.
   *
   * `GET /`, permission: none.
   *
   * @example
   * const { body } = await client.download("getRoot");
   */
  getRoot: {
    request: Record<string, never>;
    content: true;
  };
  /**
   * Add tags to objects by their ids, and to the domain where it lacks them.
   *
   * `PUT /{domain}/addtags`, permission: tags:write.
   *
   * @example
   * await client.call("putByDomainAddtags", {
   *   path: { domain: "places" },
   *   body: { tag: ["europe/oslo"], id: ["hostinfo:web-1"] },
   * });
   */
  putByDomainAddtags: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** At least 1 item. */
        tag: readonly string[];
        /** At least 1 item. */
        id: readonly string[];
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Take tags from objects by their ids.
   *
   * `DELETE /{domain}/deletetags`, permission: tags:write.
   *
   * @example
   * await client.call("deleteByDomainDeletetags", {
   *   path: { domain: "places" },
   *   body: { tag: ["europe/oslo"], id: ["hostinfo:web-1"] },
   * });
   */
  deleteByDomainDeletetags: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** At least 1 item. */
        tag: readonly string[];
        /** At least 1 item. */
        id: readonly string[];
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Parse a file of the file system into the class of a rule; an error when all its records fail. Failures are in the console log of the rule.
   *
   * `GET /action/parsefile`, permission: rules:write.
   *
   * @example
   * await client.call("getActionParsefile", { query: { rule: "/matrix/rules/visit", filename: "/reports/day.csv" } });
   */
  getActionParsefile: {
    request: {
      query: {
        /** Configuration key of the rule, such as /matrix/rules/access. 1 to 500 characters. */
        rule: string;
        /** Path of the file in the file space. At least 1 character. */
        filename: string;
        /** Encoding of the file, such as gbk, utf-16le or windows-1252; UTF-8 when absent. */
        encoding?: string;
        /** The file is in the system's space only, for administrators. Otherwise in the users' space first, then in the system's. Older clients send it as $issys. */
        issys?: boolean;
      };
    };
    message: {
      /** Path of the class of the rule. */
      class: string;
      /** Records stored. */
      records: number;
      /** Records that were removed after an earlier run, and stay so. */
      removed: number;
      /** Lines that could not be parsed or stored. */
      failed: number;
      /** The first lines that failed. */
      errors: {
        /** Number of the line, from 1. */
        line: number;
        /** Reason. */
        error: string;
      }[];
    };
  };
  /**
   * All API permissions.
   *
   * `GET /admin/perms/api`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminPermsApi");
   */
  getAdminPermsApi: {
    request: Record<string, never>;
    message: {
      /** Name of the API permission. */
      name: string;
      /** Folders, each with all below it, and files. */
      pprefix: string[];
      /** Groups with the permission. */
      _group: {
        /** Full names of groups. */
        _all: string[];
      };
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Make an API permission for paths of scripts and files; it has no group yet.
   *
   * `POST /admin/perms/api`, permission: perms:write.
   *
   * @example
   * await client.call("postAdminPermsApi", { body: { name: "reports", path: ["/reports"] } });
   */
  postAdminPermsApi: {
    request: {
      body: {
        /** Name of the API permission. At least 1 character. */
        name: string;
        /** Folders, each with all below it, and files. At least 1 item. */
        path: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * One API permission.
   *
   * `GET /admin/perms/api/{name}`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminPermsApiByName", { path: { name: "reports" } });
   */
  getAdminPermsApiByName: {
    request: {
      path: {
        /** Name of the API permission. */
        name: string;
      };
    };
    message: {
      /** Name of the API permission. */
      name: string;
      /** Folders, each with all below it, and files. */
      pprefix: string[];
      /** Groups with the permission. */
      _group: {
        /** Full names of groups. */
        _all: string[];
      };
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
  };
  /**
   * Replace the paths of an API permission.
   *
   * `PUT /admin/perms/api/{name}`, permission: perms:write.
   *
   * @example
   * await client.call("putAdminPermsApiByName", { path: { name: "reports" }, body: { path: ["/reports", "/archive"] } });
   */
  putAdminPermsApiByName: {
    request: {
      path: {
        /** Name of the API permission. */
        name: string;
      };
      body: {
        /** Folders, each with all below it, and files. At least 1 item. */
        path: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Delete an API permission; its paths are closed at once.
   *
   * `DELETE /admin/perms/api/{name}`, permission: perms:write.
   *
   * @example
   * await client.call("deleteAdminPermsApiByName", { path: { name: "reports" } });
   */
  deleteAdminPermsApiByName: {
    request: {
      path: {
        /** Name of the API permission. */
        name: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Open the paths of an API permission to groups, beside those that have it.
   *
   * `PUT /admin/perms/api/{name}/group`, permission: perms:write.
   *
   * @example
   * await client.call("putAdminPermsApiByNameGroup", { path: { name: "reports" }, body: { group: ["/night"] } });
   */
  putAdminPermsApiByNameGroup: {
    request: {
      path: {
        /** Name of the API permission. */
        name: string;
      };
      body: {
        /** Full names of groups. At least 1 item. */
        group: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Close the paths of an API permission to groups.
   *
   * `DELETE /admin/perms/api/{name}/group`, permission: perms:write.
   *
   * @example
   * await client.call("deleteAdminPermsApiByNameGroup", { path: { name: "reports" }, query: { group: ["/night"] } });
   */
  deleteAdminPermsApiByNameGroup: {
    request: {
      path: {
        /** Name of the API permission. */
        name: string;
      };
      query: {
        /** Full names of groups. At least 1 item. */
        group: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Let every controller drop what it keeps in memory of groups, permissions and who signed in.
   *
   * `GET /admin/perms/app/refresh`, permission: perms:write.
   *
   * @example
   * await client.call("getAdminPermsAppRefresh");
   */
  getAdminPermsAppRefresh: {
    request: Record<string, never>;
    message: string;
  };
  /**
   * Let every controller drop what it keeps in memory of groups, permissions and who signed in.
   *
   * `POST /admin/perms/app/refresh`, permission: perms:write.
   *
   * @example
   * await client.call("postAdminPermsAppRefresh");
   */
  postAdminPermsAppRefresh: {
    request: Record<string, never>;
    message: string;
  };
  /**
   * Why a user may or may not use a class, a path or an endpoint, and which groups may.
   *
   * `GET /admin/perms/explain`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminPermsExplain", { query: { class: "/matrix/visit" } });
   */
  getAdminPermsExplain: {
    request: {
      query?: {
        /** Name of a user; absent: the caller. */
        user?: string;
        /** A class path. */
        class?: string;
        /** A path of a script or a file. */
        path?: string;
        /** Method and path, such as GET /host. */
        endpoint?: string;
        /** Of a class: whether objects may be written; read otherwise. */
        write?: boolean;
      };
    };
    message: {
      /** Name of the user. */
      user: string;
      /** Full names of the user's groups, nested ones included. */
      groups: string[];
      /** True: the user may do it. */
      allowed: boolean;
      /** Reasons, in words. */
      why: string[];
      /** Groups that give the right. */
      who: {
        /** Full name of the group. */
        group: string;
        /** Its right, in words. */
        how: string;
        /** Some users of the group: those whom the caller may see. */
        member: string[];
      }[];
    };
  };
  /**
   * Groups below a group, or those below none.
   *
   * `GET /admin/perms/group`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminPermsGroup");
   */
  getAdminPermsGroup: {
    request: {
      query?: {
        /** Full name of a group; empty: those without one. */
        parent?: string;
      };
    };
    message: {
      /** Id of the group. */
      id: string;
      /** Name of the group, without those above it. */
      name: string;
      /** Name with those of the groups above it. */
      fullname: string;
      /** Full name of the group whose name it continues; empty: none. */
      parent: string;
      /** U and the full name of a user, or G and the full name of a group. */
      member: string[];
      /** Class path: the columns that members see. */
      fields: Record<string, string>;
      /** The rows of a tree that members see. */
      readexps: string[];
      /** Class paths: members read the objects of these trees. */
      readonly: string[];
      /** Class paths: members read and write the objects of these trees. */
      writable: string[];
      /** Labels of the group. */
      tags: string[];
      /** True: names of other groups continue its name. */
      isParent: boolean;
      /** Always false. */
      isldap: boolean;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Change a group: members that are absent stay; the message is its id.
   *
   * `PUT /admin/perms/group`, permission: perms:write.
   *
   * @example
   * await client.call("putAdminPermsGroup", { body: { name: "night", readonly: ["/matrix/visit"], tags: ["shift"] } });
   */
  putAdminPermsGroup: {
    request: {
      body: {
        /** Absent: the group that name and parent say. At least 1 character. */
        id?: string;
        /** Name of the group. At least 1 character. */
        name?: string;
        /** Full name of the group whose name it continues; empty: none. */
        parent?: string;
        /** U and the full name of a user, or G and the full name of a group. */
        member?: readonly string[];
        /** Class paths: members read the objects of these trees. */
        readonly?: readonly string[];
        /** Class paths: members read and write the objects of these trees. */
        writable?: readonly string[];
        /** <class path>: <condition>, the rows of that tree which members see; without a path for every class. */
        readexps?: readonly string[];
        /** Class path: the columns that members see, with commas; -name is hidden, * is all. */
        fields?: Record<string, string>;
        /** Labels of the group. */
        tags?: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Make a group; the message is its id.
   *
   * `POST /admin/perms/group`, permission: perms:write.
   *
   * @example
   * await client.call("postAdminPermsGroup", { body: { name: "night", member: ["U/ana"], readonly: ["/matrix/visit"] } });
   */
  postAdminPermsGroup: {
    request: {
      body: {
        /** Name of the group. At least 1 character. */
        name: string;
        /** Full name of the group whose name it continues; empty: none. */
        parent?: string;
        /** U and the full name of a user, or G and the full name of a group. */
        member?: readonly string[];
        /** Class paths: members read the objects of these trees. */
        readonly?: readonly string[];
        /** Class paths: members read and write the objects of these trees. */
        writable?: readonly string[];
        /** <class path>: <condition>, the rows of that tree which members see; without a path for every class. */
        readexps?: readonly string[];
        /** Class path: the columns that members see, with commas; -name is hidden, * is all. */
        fields?: Record<string, string>;
        /** Labels of the group. */
        tags?: readonly string[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * One group.
   *
   * `GET /admin/perms/group/{id}`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminPermsGroupById", { path: { id: "/night" } });
   */
  getAdminPermsGroupById: {
    request: {
      path: {
        /** Id of the group. */
        id: string;
      };
    };
    message: {
      /** Id of the group. */
      id: string;
      /** Name of the group, without those above it. */
      name: string;
      /** Name with those of the groups above it. */
      fullname: string;
      /** Full name of the group whose name it continues; empty: none. */
      parent: string;
      /** U and the full name of a user, or G and the full name of a group. */
      member: string[];
      /** Class path: the columns that members see. */
      fields: Record<string, string>;
      /** The rows of a tree that members see. */
      readexps: string[];
      /** Class paths: members read the objects of these trees. */
      readonly: string[];
      /** Class paths: members read and write the objects of these trees. */
      writable: string[];
      /** Labels of the group. */
      tags: string[];
      /** True: names of other groups continue its name. */
      isParent: boolean;
      /** Always false. */
      isldap: boolean;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
  };
  /**
   * Delete a group; what it opened is closed at once.
   *
   * `DELETE /admin/perms/group/{id}`, permission: perms:write.
   *
   * @example
   * await client.call("deleteAdminPermsGroupById", { path: { id: "/night" } });
   */
  deleteAdminPermsGroupById: {
    request: {
      path: {
        /** Id of the group. */
        id: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Whom a second factor is required of, and whether first passwords are for once.
   *
   * `GET /admin/signinpolicy`, permission: users:read.
   *
   * @example
   * await client.call("getAdminSigninpolicy");
   */
  getAdminSigninpolicy: {
    request: Record<string, never>;
    message: {
      /** Whom a second factor is required of; administrators are those who may change groups. */
      secondfactor: "optional" | "administrators" | "everybody";
      /** `once`: a password set by somebody else signs in to its change only, and for seven days. */
      firstpasswords: "lasting" | "once";
    };
  };
  /**
   * Change the members that are sent; users who lack what it requires can do nothing else until they have it.
   *
   * `POST /admin/signinpolicy`, permission: perms:write.
   *
   * @example
   * await client.call("postAdminSigninpolicy", { body: { secondfactor: "optional" } });
   */
  postAdminSigninpolicy: {
    request: {
      body?: {
        /** Whom a second factor is required of; administrators are those who may change groups. */
        secondfactor?: "optional" | "administrators" | "everybody";
        /** `once`: a password set by somebody else signs in to its change only, and for seven days. */
        firstpasswords?: "lasting" | "once";
      };
    };
    message: {
      /** Whom a second factor is required of; administrators are those who may change groups. */
      secondfactor: "optional" | "administrators" | "everybody";
      /** `once`: a password set by somebody else signs in to its change only, and for seven days. */
      firstpasswords: "lasting" | "once";
      /** Programs that stop until their user has done what the policy requires, by this change. */
      stops: {
        /** Names of users whose Basic sign-in is refused. */
        users: string[];
        /** How many there are; `users` names the first of them. */
        usercount: number;
        /** Tokens that are refused. */
        tokens: {
          /** Name of the user. */
          user: string;
          /** Name of the token. */
          name: string;
        }[];
        /** How many there are; `tokens` names the first of them. */
        tokencount: number;
      };
    };
  };
  /**
   * The policy as these members would leave it, and which tokens and Basic users would stop; changes nothing.
   *
   * `GET /admin/signinpolicy/preview`, permission: perms:read.
   *
   * @example
   * await client.call("getAdminSigninpolicyPreview", { query: { secondfactor: "administrators" } });
   */
  getAdminSigninpolicyPreview: {
    request: {
      query?: {
        /** Whom a second factor is required of; administrators are those who may change groups. */
        secondfactor?: "optional" | "administrators" | "everybody";
        /** `once`: a password set by somebody else signs in to its change only, and for seven days. */
        firstpasswords?: "lasting" | "once";
      };
    };
    message: {
      /** Whom a second factor is required of; administrators are those who may change groups. */
      secondfactor: "optional" | "administrators" | "everybody";
      /** `once`: a password set by somebody else signs in to its change only, and for seven days. */
      firstpasswords: "lasting" | "once";
      /** Programs that stop until their user has done what the policy requires, by this change. */
      stops: {
        /** Names of users whose Basic sign-in is refused. */
        users: string[];
        /** How many there are; `users` names the first of them. */
        usercount: number;
        /** Tokens that are refused. */
        tokens: {
          /** Name of the user. */
          user: string;
          /** Name of the token. */
          name: string;
        }[];
        /** How many there are; `tokens` names the first of them. */
        tokencount: number;
      };
    };
  };
  /**
   * Users and organisations as a tree, from a path downwards.
   *
   * `GET /admin/users`, permission: users:read.
   *
   * @example
   * await client.call("getAdminUsers", { query: { fullname: "/" } });
   */
  getAdminUsers: {
    request: {
      query?: {
        /** Path of an organisation or a user; / or absent: all. */
        fullname?: string;
      };
    };
    message: {
      /** 19 or 20 decimal digits. */
      id: string;
      /** / for the root. */
      username: string;
      /** Path from the root. */
      fullname: string;
      /** Path of the organisation it is in; empty for the root. */
      parent: string;
      /** usr or org. */
      otype: string;
      /** True: an administrator of the tenant. */
      isadmin?: boolean;
      /** False: the user, or each user below the organisation, cannot sign in. */
      isactive?: boolean;
      /** Number to which clients give a meaning. */
      status?: number;
      /** Given name. */
      firstname?: string;
      /** Family name. */
      lastname?: string;
      /** Gender, as the client writes it. */
      gender?: string;
      /** Postal address. */
      address?: string;
      /** Account of a messenger. */
      imaccount?: string;
      /** The same as imaccount. */
      wechat?: string;
      /** Remark for people. */
      remark?: string;
      /** Way to sign in that clients noted. */
      auth?: string;
      /** Mail addresses. */
      email?: string[];
      /** Numbers of mobile phones. */
      mobile?: string[];
      /** Numbers of telephones. */
      telephone?: string[];
      /** Full names of the groups of the user. */
      grpset?: string[];
      /** Values to which clients give a meaning, but for time_zone. */
      config?: Record<string, string>;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision?: string;
      /** Organisations, then users, by name; nodes of this same form. */
      nodes: Record<string, unknown>[];
    };
  };
  /**
   * Whether a password is acceptable, as /user/vali_password.
   *
   * `POST /admin/users`, permission: users:read.
   *
   * @example
   * await client.call("postAdminUsers", { body: "correct horse battery staple" });
   */
  postAdminUsers: {
    request: {
      /** The password. */
      body?: Content;
    };
    message: string;
  };
  /**
   * Move a user or an organisation to another organisation; answers the id.
   *
   * `GET /admin/users/{userid}`, permission: users:write.
   *
   * @example
   * await client.call("getAdminUsersByUserid", { path: { userid: "4611686018427387904" }, query: { to: "/" } });
   */
  getAdminUsersByUserid: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
      query: {
        /** Id or path of the organisation to move to. */
        to: string;
      };
    };
    message: string;
  };
  /**
   * Change the members that are sent; warnings tell what goes on with rights that are lost.
   *
   * `POST /admin/users/{userid}`, permission: users:write.
   *
   * @example
   * await client.call("postAdminUsersByUserid", {
   *   path: { userid: "4611686018427387904" },
   *   body: { email: ["ana@example.com"] },
   * });
   */
  postAdminUsersByUserid: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
      body?: {
        /** New password; ends all sessions and tokens of the user. 8 to 4096 characters. */
        passwd?: string;
        /** The caller's present one; required with passwd for oneself. At most 4096 characters. */
        password?: string;
        /** Way to sign in that clients note; without effect. At most 64 characters. */
        auth?: string;
        /** Full names of the groups of the user, in place of the present ones. At most 256 items. */
        grpset?: readonly string[];
        /** Family name. At most 256 characters. */
        lastname?: string;
        /** Given name. At most 256 characters. */
        firstname?: string;
        /** Gender, as the client writes it. At most 64 characters. */
        gender?: string;
        /** Postal address. At most 1000 characters. */
        address?: string;
        /** Mail addresses. At most 32 items. */
        email?: readonly string[];
        /** Account of a messenger. At most 256 characters. */
        imaccount?: string;
        /** Another name of imaccount. At most 256 characters. */
        wechat?: string;
        /** Numbers of mobile phones. At most 32 items. */
        mobile?: readonly string[];
        /** Numbers of telephones. At most 32 items. */
        telephone?: readonly string[];
        /** Remark for people. At most 4000 characters. */
        remark?: string;
        /** Number to which clients give a meaning; without effect. -2147483648 to 2147483647. */
        status?: number;
        /** True: the user is an administrator of the tenant. */
        isadmin?: boolean;
        /** False: the user, or each user below the organisation, cannot sign in. */
        isactive?: boolean;
        /** The client gives these their meaning, but for time_zone: the zone in which statements of the user count days. */
        config?: Record<string, string>;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Delete a user, or an organisation with nothing in it; warnings tell what stops with the user and what goes on.
   *
   * `DELETE /admin/users/{userid}`, permission: users:write.
   *
   * @example
   * await client.call("deleteAdminUsersByUserid", { path: { userid: "4611686018427387904" } });
   */
  deleteAdminUsersByUserid: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * The account of a user at the OpenID provider.
   *
   * `GET /admin/users/{userid}/openid`, permission: users:read.
   *
   * @example
   * await client.call("getAdminUsersByUseridOpenid", { path: { userid: "4611686018427387904" } });
   */
  getAdminUsersByUseridOpenid: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: {
      /** Empty: no account is linked. */
      issuer: string;
      /** Names the account at the provider. */
      subject: string;
    };
  };
  /**
   * Link a user to an account at the OpenID provider, which then signs in as that user.
   *
   * `PUT /admin/users/{userid}/openid`, permission: users:write.
   *
   * @example
   * await client.call("putAdminUsersByUseridOpenid", { path: { userid: "4611686018427387904" }, body: { subject: "248289761001" } });
   */
  putAdminUsersByUseridOpenid: {
    request: {
      path: {
        /** Id of the user. At most 20 characters. */
        userid: string;
      };
      body: {
        /** The claim sub of the account at the provider. 1 to 255 characters. */
        subject: string;
      };
    };
    message: string;
  };
  /**
   * Unlink a user from the account at the OpenID provider, and end what is signed in.
   *
   * `DELETE /admin/users/{userid}/openid`, permission: users:write.
   *
   * @example
   * await client.call("deleteAdminUsersByUseridOpenid", { path: { userid: "4611686018427387904" } });
   */
  deleteAdminUsersByUseridOpenid: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: string;
  };
  /**
   * Remove the second factor of a user who lost the device.
   *
   * `DELETE /admin/users/{userid}/secondfactor`, permission: users:write.
   *
   * @example
   * await client.call("deleteAdminUsersByUseridSecondfactor", { path: { userid: "4611686018427387904" } });
   */
  deleteAdminUsersByUseridSecondfactor: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: string;
  };
  /**
   * Open sessions of a user.
   *
   * `GET /admin/users/{userid}/sessions`, permission: users:read.
   *
   * @example
   * await client.call("getAdminUsersByUseridSessions", { path: { userid: "4611686018427387904" } });
   */
  getAdminUsersByUseridSessions: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: {
      /** Names the session; it does not sign in. */
      id: string;
      /** milliseconds since 1970. */
      createdMs: number;
      /** Address it was made from. */
      remote: string;
      /** This call came by it. */
      current: boolean;
    }[];
  };
  /**
   * End all sessions of a user and revoke all tokens; answers how many there were.
   *
   * `DELETE /admin/users/{userid}/sessions`, permission: users:write.
   *
   * @example
   * await client.call("deleteAdminUsersByUseridSessions", { path: { userid: "4611686018427387904" } });
   */
  deleteAdminUsersByUseridSessions: {
    request: {
      path: {
        /** Id of the user or organisation. At most 20 characters. */
        userid: string;
      };
    };
    message: number;
  };
  /**
   * Set the start page of users without one of their own.
   *
   * `POST /admin/users/home`, permission: users:write.
   *
   * @example
   * await client.call("postAdminUsersHome", { body: { home: "/static/start.html" } });
   */
  postAdminUsersHome: {
    request: {
      body?: {
        /** Path of a page of this site; empty or absent: none of one's own. At most 1000 characters. */
        home?: string;
      };
    };
    message: string;
  };
  /**
   * Make a user or an organisation; answers its id.
   *
   * `POST /admin/users/new`, permission: users:write.
   *
   * @example
   * await client.call("postAdminUsersNew", {
   *   body: {
   *     parent: "/",
   *     username: "ana",
   *     passwd: "correct horse battery staple",
   *     otype: "usr",
   *     lastname: "Ruiz",
   *   },
   * });
   */
  postAdminUsersNew: {
    request: {
      body: {
        /** Path or id of an organisation; / is the root. 1 to 8000 characters. */
        parent: string;
        /** Name of the user or organisation. At most 128 characters. */
        username: string;
        /** Required for a user; ignored for an organisation. 8 to 4096 characters. */
        passwd?: string;
        /** usr: a user; org: an organisation. */
        otype: "usr" | "org";
        /** Way to sign in that clients note; without effect. At most 64 characters. */
        auth?: string;
        /** Full names of the groups of the user, in place of the present ones. At most 256 items. */
        grpset?: readonly string[];
        /** Family name. At most 256 characters. */
        lastname?: string;
        /** Given name. At most 256 characters. */
        firstname?: string;
        /** Gender, as the client writes it. At most 64 characters. */
        gender?: string;
        /** Postal address. At most 1000 characters. */
        address?: string;
        /** Mail addresses. At most 32 items. */
        email?: readonly string[];
        /** Account of a messenger. At most 256 characters. */
        imaccount?: string;
        /** Another name of imaccount. At most 256 characters. */
        wechat?: string;
        /** Numbers of mobile phones. At most 32 items. */
        mobile?: readonly string[];
        /** Numbers of telephones. At most 32 items. */
        telephone?: readonly string[];
        /** Remark for people. At most 4000 characters. */
        remark?: string;
        /** Number to which clients give a meaning; without effect. -2147483648 to 2147483647. */
        status?: number;
        /** True: the user is an administrator of the tenant. */
        isadmin?: boolean;
        /** False: the user, or each user below the organisation, cannot sign in. */
        isactive?: boolean;
        /** The client gives these their meaning, but for time_zone: the zone in which statements of the user count days. */
        config?: Record<string, string>;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * The lines of the body through a rule into its class, or to a channel, a frame for each.
   *
   * `POST /agent`, permission: rules:write.
   *
   * @example
   * await client.call("postAgent", { query: { rule: "/matrix/rules/visit" }, body: "/start,200\n/about,404\n" });
   */
  postAgent: {
    request: {
      query?: {
        /** Configuration key of the rule, such as /matrix/rules/access. 1 to 500 characters. */
        rule?: string;
        /** Channel that hears each line, in place of a rule. 1 to 500 characters. */
        subject?: string;
        /** Lines with bytes that are no text are taken for a rule that makes records, and these are marked; refused otherwise. */
        malformed?: "mark";
      };
      /** The lines. */
      body?: Content;
    };
    message: {
      /** Path of the class of the rule. */
      class?: string;
      /** Records stored. */
      records?: number;
      /** Records that were removed after an earlier run, and stay so. */
      removed?: number;
      /** Lines that could not be parsed or stored. */
      failed?: number;
      /** The first lines that failed. */
      errors?: {
        /** Number of the line, from 1. */
        line: number;
        /** Reason. */
        error: string;
      }[];
      /** Of a channel: lines sent. */
      frames?: number;
    };
  };
  /**
   * A certificate for the holder of a join token.
   *
   * `POST /agent/enrol`, permission: none.
   *
   * @example
   * await client.call("postAgentEnrol", {
   *   body: {
   *     id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
   *     csr: "-----BEGIN CERTIFICATE REQUEST-----",
   *     proof: "0",
   *   },
   * });
   */
  postAgentEnrol: {
    request: {
      body: {
        /** Id of the token. At most 200 characters. */
        id: string;
        /** Certificate signing request (PKCS #10), DER in base64. At most 20000 characters. */
        csr: string;
        /** Proof that the agent has the secret of the token: a code over the request, in base64. At most 200 characters. */
        proof: string;
        /** true: the agent was given its name, so a token for another host is refused. */
        named?: boolean;
      };
    };
    message: {
      /** Certificate of the agent, DER in base64. */
      certificate: string;
      /** Certificates of the authorities that sign controllers, DER in base64. */
      authorities: string[];
      /** Name under which the host is enrolled. */
      host: string;
      /** Name of the tenant. */
      tenant: string;
      /** Port for agents of this controller. */
      agentPort: number;
      /** `host:port` of all controllers for agents; empty: the address that the agent enrolled at. */
      controllers: string[];
      /** Proof that the controller has the secret of the token: a code over the answer, in base64. */
      proof: string;
    };
  };
  /**
   * Join tokens, used or not, until they expire.
   *
   * `GET /agent/token`, permission: hosts:write.
   *
   * @example
   * await client.call("getAgentToken");
   */
  getAgentToken: {
    request: Record<string, never>;
    message: {
      /** Id of the token, which revokes it. */
      id: string;
      /** the host that may enrol; empty: any host without an enrolment. */
      host: string;
      /** the user who made it; empty: an earlier version of odp. */
      user: string;
      /** milliseconds since 1970. */
      expires: number;
      /** milliseconds since 1970; 0: not used. */
      used: number;
      /** the host that enrolled with it; empty: none. */
      usedBy: string;
    }[];
  };
  /**
   * A join token, good for one enrolment.
   *
   * `POST /agent/token`, permission: hosts:write.
   *
   * @example
   * await client.call("postAgentToken", { body: { host: "web-1", minutes: 60 } });
   */
  postAgentToken: {
    request: {
      body?: {
        /** The only host that may enrol with the token. Absent: any host without an enrolment. 1 to 255 characters. */
        host?: string;
        /** minutes that it holds. 1 to 10080. */
        minutes?: number;
      };
    };
    message: {
      /** The token, told once. An agent takes it as ODP_AGENT_TOKEN. */
      token: string;
      /** names the token in lists, and revokes it. */
      id: string;
      /** milliseconds since 1970. */
      expires: number;
      /** Address of this controller for hosts; absent: not known. */
      controller?: string;
    };
  };
  /**
   * Revokes a join token that was not used.
   *
   * `DELETE /agent/token/{id}`, permission: hosts:write.
   *
   * @example
   * await client.call("deleteAgentTokenById", { path: { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  deleteAgentTokenById: {
    request: {
      path: {
        /** Id of the token, as the list of tokens has it. 1 to 64 characters. */
        id: string;
      };
    };
    message: string;
  };
  /**
   * Functions that scripts of the kind rule find.
   *
   * `GET /api/rule/funcs`, permission: rules:read.
   *
   * @example
   * await client.call("getApiRuleFuncs");
   */
  getApiRuleFuncs: {
    request: Record<string, never>;
    message: {
      /** As it is called: <object>.<function>. */
      name: string;
      /** Object that the function belongs to. */
      object: string;
      /** The work of the function, in a sentence. */
      summary: string;
      /** Arguments, in their order. */
      parameters: {
        /** Name of the argument. */
        name: string;
        /** Type of the argument. */
        type: string;
        /** Meaning of the argument. */
        title: string;
        /** True: the argument may be left out. */
        optional: boolean;
        /** It takes all arguments from here on. */
        list: boolean;
      }[];
      /** The result, in words; empty: none. */
      returns: string;
      /** A call of the function. */
      example: string;
      /** The language whose scripts find it; without it, each. */
      language?: string;
    }[];
  };
  /**
   * Functions that scripts of the kind trigger find.
   *
   * `GET /api/trigger/funcs`, permission: scripts:read.
   *
   * @example
   * await client.call("getApiTriggerFuncs");
   */
  getApiTriggerFuncs: {
    request: Record<string, never>;
    message: {
      /** As it is called: <object>.<function>. */
      name: string;
      /** Object that the function belongs to. */
      object: string;
      /** The work of the function, in a sentence. */
      summary: string;
      /** Arguments, in their order. */
      parameters: {
        /** Name of the argument. */
        name: string;
        /** Type of the argument. */
        type: string;
        /** Meaning of the argument. */
        title: string;
        /** True: the argument may be left out. */
        optional: boolean;
        /** It takes all arguments from here on. */
        list: boolean;
      }[];
      /** The result, in words; empty: none. */
      returns: string;
      /** A call of the function. */
      example: string;
      /** The language whose scripts find it; without it, each. */
      language?: string;
    }[];
  };
  /**
   * The text of a variable.
   *
   * `GET /appcontext/{key}`, permission: appcontext:read.
   *
   * @example
   * await client.call("getAppcontextByKey", { path: { key: "colour" } });
   */
  getAppcontextByKey: {
    request: {
      path: {
        /** Name of the variable. */
        key: string;
      };
    };
    message: string;
  };
  /**
   * Set a variable: the body is its text as it is.
   *
   * `POST /appcontext/{key}`, permission: appcontext:write.
   *
   * @example
   * await client.call("postAppcontextByKey", { path: { key: "colour" }, query: { ttl: 3600 }, body: "blue" });
   */
  postAppcontextByKey: {
    request: {
      path: {
        /** Name of the variable. */
        key: string;
      };
      query?: {
        /** Seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
      /** The text to keep. */
      body: Content;
    };
    message: string;
  };
  /**
   * Remove a variable; ok also when there is none.
   *
   * `DELETE /appcontext/{key}`, permission: appcontext:write.
   *
   * @example
   * await client.call("deleteAppcontextByKey", { path: { key: "colour" } });
   */
  deleteAppcontextByKey: {
    request: {
      path: {
        /** Name of the variable. */
        key: string;
      };
    };
    message: string;
  };
  /**
   * Items of a collection, the oldest first, or one of them.
   *
   * `GET /appcontext/collection/{name}`, permission: appcontext:read.
   *
   * @example
   * await client.call("getAppcontextCollectionByName", { path: { name: "shifts" }, query: { where: "open == true" } });
   */
  getAppcontextCollectionByName: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
      };
      query?: {
        /** A condition, such as size > 5 && tags contains 'red'. */
        where?: string;
        /** first, last: only the oldest or the newest item, an empty text when there is none. */
        type?: "first" | "last" | "";
      };
    };
    message: ({
      /** Id of the item; its other members are those that were stored. */
      id: string;
    } & Record<string, unknown>)[] | {
      /** Id of the item; its other members are those that were stored. */
      id: string;
    } & Record<string, unknown> | string;
  };
  /**
   * Make an item of the JSON object in the body; the message is its id.
   *
   * `POST /appcontext/collection/{name}`, permission: appcontext:write.
   *
   * @example
   * await client.call("postAppcontextCollectionByName", { path: { name: "shifts" }, body: { title: "Night shift", open: true } });
   */
  postAppcontextCollectionByName: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
      };
      query?: {
        /** Seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
      /** The item, as a JSON object. */
      body: Record<string, unknown>;
    };
    message: string;
  };
  /**
   * Remove all items of a collection.
   *
   * `DELETE /appcontext/collection/{name}`, permission: appcontext:write.
   *
   * @example
   * await client.call("deleteAppcontextCollectionByName", { path: { name: "shifts" } });
   */
  deleteAppcontextCollectionByName: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
      };
    };
    message: string;
  };
  /**
   * One item.
   *
   * `GET /appcontext/collection/{name}/{id}`, permission: appcontext:read.
   *
   * @example
   * await client.call("getAppcontextCollectionByNameById", { path: { name: "shifts", id: "night" } });
   */
  getAppcontextCollectionByNameById: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
        /** Id of the item, as its creation answered it. */
        id: string;
      };
    };
    message: {
      /** Id of the item; its other members are those that were stored. */
      id: string;
    } & Record<string, unknown>;
  };
  /**
   * Replace the item of that id, which has to be there.
   *
   * `PUT /appcontext/collection/{name}/{id}`, permission: appcontext:write.
   *
   * @example
   * await client.call("putAppcontextCollectionByNameById", {
   *   path: { name: "shifts", id: "night" },
   *   body: { title: "Night shift", open: true },
   * });
   */
  putAppcontextCollectionByNameById: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
        /** Id of the item. */
        id: string;
      };
      query?: {
        /** Seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
      /** The item, as a JSON object. */
      body: Record<string, unknown>;
    };
    message: string;
  };
  /**
   * Insert or replace the item of that id.
   *
   * `POST /appcontext/collection/{name}/{id}`, permission: appcontext:write.
   *
   * @example
   * await client.call("postAppcontextCollectionByNameById", {
   *   path: { name: "shifts", id: "night" },
   *   body: { title: "Night shift", open: true },
   * });
   */
  postAppcontextCollectionByNameById: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
        /** Id of the item. */
        id: string;
      };
      query?: {
        /** Seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
      /** The item, as a JSON object. */
      body: Record<string, unknown>;
    };
    message: string;
  };
  /**
   * Remove one item; ok also when there is none.
   *
   * `DELETE /appcontext/collection/{name}/{id}`, permission: appcontext:write.
   *
   * @example
   * await client.call("deleteAppcontextCollectionByNameById", { path: { name: "shifts", id: "night" } });
   */
  deleteAppcontextCollectionByNameById: {
    request: {
      path: {
        /** Name of the collection. */
        name: string;
        /** Id of the item, as its creation answered it. */
        id: string;
      };
    };
    message: string;
  };
  /**
   * Entries of the audit trail as lines of JSON, the newest first; the last line is {end: {entries}}.
   *
   * `GET /audit/export`, permission: audit:read.
   *
   * @example
   * for await (const line of client.lines("getAuditExport", { query: { from: 1700000000000 } })) console.log(line);
   */
  getAuditExport: {
    request: {
      query?: {
        /** milliseconds since 1970: entries from then on. */
        from?: number;
        /** milliseconds since 1970: entries before. */
        to?: number;
      };
    };
    line: {
      /** Name of the tenant. */
      tenant: string;
      /** User who acted; empty: a stranger. */
      user: string;
      /** Permission that the act needs. */
      permission: string;
      /** Method and path of the call, or the act in words, such as sign in. */
      action: string;
      /** Objects that it changed or tried to change, with commas; empty: see action. */
      object: string;
      /** ok, denied or failed. */
      outcome: string;
      /** Code of the error; ok or empty without one. */
      code: string;
      /** Address of the caller. */
      remote: string;
      /** Trace id of the call. */
      traceparent: string;
      /** milliseconds since 1970. */
      timeMs: number;
      /** Run of the controller that wrote the entry. */
      run: string;
      /** Number of the entry in the run, from 1. */
      sequence: number;
      /** Hash of the entry before. */
      previous: string;
      /** Hash of this entry and of the one before. */
      hash: string;
    } | {
      /** The last line of a complete export. */
      end: {
        /** Number of all entries. */
        entries: number;
      };
    } | {
      /** Why it broke off. */
      error: {
        /** Code of the error. */
        code: string;
        /** Text of the error. */
        message: string;
      };
    };
  };
  /**
   * Reads the whole audit trail and tells what in it was changed, taken out, put in or cut off.
   *
   * `GET /audit/verify`, permission: audit:read.
   *
   * @example
   * await client.call("getAuditVerify");
   */
  getAuditVerify: {
    request: {
      query?: {
        /** lines of JSON: {entries} from time to time, at the end {report} or {error}. */
        stream?: boolean;
      };
    };
    message: {
      /** Entries that were read. */
      entries: number;
      /** Runs of controllers whose entries were read. */
      runs: number;
      /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
      unkeyed: number;
      /** entries that no sealed head names: of the last minute, and of controllers that were killed. */
      uncovered: number;
      /** entries of runs that earlier versions made, without sealed heads. */
      beforeHeads: number;
      /** runs that were compared with what is kept of them outside the store. */
      anchors: number;
      /** why digests are not, or cannot be read, outside the store; absent: they are. */
      anchorFault?: string;
      /** A fault of the trail. */
      first?: {
        /** altered: its content was changed; missing: entries were taken out; doubled, reordered: put in or moved; unknown_key: made with a key that the key file lacks; truncated: the end was cut off; replaced: written anew with the key; unkeyed: a digest that needs no key where all have one; added: an earlier run that was not there; heads: the sealed heads were changed, removed or put back. */
        kind: string;
        /** one run of one controller; empty: the sealed heads of all. */
        run: string;
        /** its number in the run; of entries that are gone the first; of heads their version. */
        sequence: number;
        /** milliseconds since 1970. */
        timeMs: number;
        /** The fault in words. */
        text: string;
      };
      /** Faults of the trail, oldest first; empty if it is sound. */
      problems: string[];
      /** Changes that this verification cannot detect. */
      notes: string[];
    };
    line: {
      /** read so far. */
      entries: number;
    } | {
      /** Result of a verification. */
      report: {
        /** Entries that were read. */
        entries: number;
        /** Runs of controllers whose entries were read. */
        runs: number;
        /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
        unkeyed: number;
        /** entries that no sealed head names: of the last minute, and of controllers that were killed. */
        uncovered: number;
        /** entries of runs that earlier versions made, without sealed heads. */
        beforeHeads: number;
        /** runs that were compared with what is kept of them outside the store. */
        anchors: number;
        /** why digests are not, or cannot be read, outside the store; absent: they are. */
        anchorFault?: string;
        /** A fault of the trail. */
        first?: {
          /** altered: its content was changed; missing: entries were taken out; doubled, reordered: put in or moved; unknown_key: made with a key that the key file lacks; truncated: the end was cut off; replaced: written anew with the key; unkeyed: a digest that needs no key where all have one; added: an earlier run that was not there; heads: the sealed heads were changed, removed or put back. */
          kind: string;
          /** one run of one controller; empty: the sealed heads of all. */
          run: string;
          /** its number in the run; of entries that are gone the first; of heads their version. */
          sequence: number;
          /** milliseconds since 1970. */
          timeMs: number;
          /** The fault in words. */
          text: string;
        };
        /** Faults of the trail, oldest first; empty if it is sound. */
        problems: string[];
        /** Changes that this verification cannot detect. */
        notes: string[];
      };
    } | {
      /** Why it broke off. */
      error: {
        /** Code of the error. */
        code: string;
        /** Text of the error. */
        message: string;
      };
    };
  };
  /**
   * The same, compared with anchors of other controllers, too.
   *
   * `POST /audit/verify`, permission: audit:read.
   *
   * @example
   * await client.call("postAuditVerify", { body: { anchors: [] } });
   */
  postAuditVerify: {
    request: {
      body: {
        /** lines of JSON: {entries} from time to time, at the end {report} or {error}. */
        stream?: boolean;
        /** Lines of anchor files that are compared with the trail. At most 10000 items. */
        anchors: readonly string[];
      };
    };
    message: {
      /** Entries that were read. */
      entries: number;
      /** Runs of controllers whose entries were read. */
      runs: number;
      /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
      unkeyed: number;
      /** entries that no sealed head names: of the last minute, and of controllers that were killed. */
      uncovered: number;
      /** entries of runs that earlier versions made, without sealed heads. */
      beforeHeads: number;
      /** runs that were compared with what is kept of them outside the store. */
      anchors: number;
      /** why digests are not, or cannot be read, outside the store; absent: they are. */
      anchorFault?: string;
      /** A fault of the trail. */
      first?: {
        /** altered: its content was changed; missing: entries were taken out; doubled, reordered: put in or moved; unknown_key: made with a key that the key file lacks; truncated: the end was cut off; replaced: written anew with the key; unkeyed: a digest that needs no key where all have one; added: an earlier run that was not there; heads: the sealed heads were changed, removed or put back. */
        kind: string;
        /** one run of one controller; empty: the sealed heads of all. */
        run: string;
        /** its number in the run; of entries that are gone the first; of heads their version. */
        sequence: number;
        /** milliseconds since 1970. */
        timeMs: number;
        /** The fault in words. */
        text: string;
      };
      /** Faults of the trail, oldest first; empty if it is sound. */
      problems: string[];
      /** Changes that this verification cannot detect. */
      notes: string[];
    };
    line: {
      /** read so far. */
      entries: number;
    } | {
      /** Result of a verification. */
      report: {
        /** Entries that were read. */
        entries: number;
        /** Runs of controllers whose entries were read. */
        runs: number;
        /** Entries of earlier versions. Their hash needs no key, so they prove nothing. */
        unkeyed: number;
        /** entries that no sealed head names: of the last minute, and of controllers that were killed. */
        uncovered: number;
        /** entries of runs that earlier versions made, without sealed heads. */
        beforeHeads: number;
        /** runs that were compared with what is kept of them outside the store. */
        anchors: number;
        /** why digests are not, or cannot be read, outside the store; absent: they are. */
        anchorFault?: string;
        /** A fault of the trail. */
        first?: {
          /** altered: its content was changed; missing: entries were taken out; doubled, reordered: put in or moved; unknown_key: made with a key that the key file lacks; truncated: the end was cut off; replaced: written anew with the key; unkeyed: a digest that needs no key where all have one; added: an earlier run that was not there; heads: the sealed heads were changed, removed or put back. */
          kind: string;
          /** one run of one controller; empty: the sealed heads of all. */
          run: string;
          /** its number in the run; of entries that are gone the first; of heads their version. */
          sequence: number;
          /** milliseconds since 1970. */
          timeMs: number;
          /** The fault in words. */
          text: string;
        };
        /** Faults of the trail, oldest first; empty if it is sound. */
        problems: string[];
        /** Changes that this verification cannot detect. */
        notes: string[];
      };
    } | {
      /** Why it broke off. */
      error: {
        /** Code of the error. */
        code: string;
        /** Text of the error. */
        message: string;
      };
    };
  };
  /**
   * Objects whose last write is ahead of the controller's clock by more than AT may be.
   *
   * `GET /cluster/ahead`, permission: cluster:write.
   *
   * @example
   * await client.call("getClusterAhead");
   */
  getClusterAhead: {
    request: {
      query?: {
        /** Of the page before; absent: the first page. */
        cursor?: string;
      };
    };
    message: {
      /** In no order; a page may be empty and have a successor. */
      objects: {
        /** Id of the object. */
        id: string;
        /** Path of its class. */
        class: string;
        /** Time of its last write, in milliseconds since 1970. */
        vtimeMs: number;
      }[];
      /** Of the next page; absent: this is the last one. */
      cursor?: string;
    };
    cursor: true;
  };
  /**
   * The nodes that hold the data.
   *
   * `GET /cluster/info`, permission: cluster:read.
   *
   * @example
   * await client.call("getClusterInfo");
   */
  getClusterInfo: {
    request: Record<string, never>;
    message: {
      /** Nodes of Cassandra; for the embedded store one whose hostid is `embedded`. */
      datastore: {
        /** Data centre of the node. */
        datacenter: string;
        /** Id of the node. */
        hostid: string;
        /** True: the controller is connected to the node. */
        isup: boolean;
        /** Address of the node. */
        peer: string;
        /** Port of CQL; 0 for the embedded store. */
        port: number;
        /** Rack of the node. */
        rack: string;
      }[];
      /** Tenants whose keyspace is gone; told to the first tenant only. */
      lost?: {
        /** Name of the tenant. */
        tenant: string;
        /** What has to be restored. */
        keyspace: string;
      }[];
    };
  };
  /**
   * When the copies of each table of the tenant were last made alike by a repair, and which table is due.
   *
   * `GET /cluster/repairs`, permission: cluster:read.
   *
   * @example
   * await client.call("getClusterRepairs");
   */
  getClusterRepairs: {
    request: Record<string, never>;
    message: {
      /** Those that lie on several nodes: none with one copy of everything, or the embedded store. */
      tables: {
        /** Of Cassandra. */
        table: string;
        /** When the oldest of the repairs began that cover all of it, in milliseconds since 1970; absent when some of it was not repaired for 30 days. */
        repairedMs?: number;
        /** How often it is to be repaired. */
        everyMs: number;
        /** True: the repair is due. */
        due: boolean;
      }[];
      /** Whether one of them is. */
      due: boolean;
    };
  };
  /**
   * How far the scrub of the tenant is, what the last one found, and whether one is due; and what the row check found.
   *
   * `GET /cluster/scrub`, permission: cluster:read.
   *
   * @example
   * await client.call("getClusterScrub");
   */
  getClusterScrub: {
    request: Record<string, never>;
    message: {
      /** A comparison of objects with their indexes, edges and contents. */
      running?: {
        /** Id of the scrub. */
        id: string;
        /** Who began it. */
        user: string;
        /** `running`, `done`, `stopped` or `failed`. */
        state: string;
        /** Why it failed. */
        message: string;
        /** Milliseconds since 1970. */
        startedMs: number;
        /** Milliseconds since 1970. */
        endedMs?: number;
        /** Comparisons with the store a second, at most. */
        rate: number;
        /** `objects`, `indexes`, `sources`, `targets` or `contents`. */
        step: string;
        /** Objects, rows of indexes, edges at their sources and at their targets, and contents so far. */
        looked: {
          /** Objects. */
          objects: number;
          /** Rows of indexes. */
          indexes: number;
          /** Edges at their sources. */
          sources: number;
          /** Edges at their targets. */
          targets: number;
          /** Contents of files and depots. */
          contents: number;
        };
        /** Of contents. */
        bytes: number;
        /** Rows of indexes and edges that were missing, and are added. */
        missing: number;
        /** Rows of indexes and edges that nothing stands behind, and are removed. */
        superfluous: number;
        /** Contents that are not what their digest says; nothing mends them. */
        damaged: number;
        /** The first of what was wrong. */
        examples: string[];
      };
      /** A comparison of objects with their indexes, edges and contents. */
      last?: {
        /** Id of the scrub. */
        id: string;
        /** Who began it. */
        user: string;
        /** `running`, `done`, `stopped` or `failed`. */
        state: string;
        /** Why it failed. */
        message: string;
        /** Milliseconds since 1970. */
        startedMs: number;
        /** Milliseconds since 1970. */
        endedMs?: number;
        /** Comparisons with the store a second, at most. */
        rate: number;
        /** `objects`, `indexes`, `sources`, `targets` or `contents`. */
        step: string;
        /** Objects, rows of indexes, edges at their sources and at their targets, and contents so far. */
        looked: {
          /** Objects. */
          objects: number;
          /** Rows of indexes. */
          indexes: number;
          /** Edges at their sources. */
          sources: number;
          /** Edges at their targets. */
          targets: number;
          /** Contents of files and depots. */
          contents: number;
        };
        /** Of contents. */
        bytes: number;
        /** Rows of indexes and edges that were missing, and are added. */
        missing: number;
        /** Rows of indexes and edges that nothing stands behind, and are removed. */
        superfluous: number;
        /** Contents that are not what their digest says; nothing mends them. */
        damaged: number;
        /** The first of what was wrong. */
        examples: string[];
      };
      /** None was done to its end for seven days. */
      due: boolean;
      /** What reads all rows of the tenant again and again. */
      rows: {
        /** A round of the row check. */
        running?: {
          /** Milliseconds since 1970. */
          startedMs: number;
          /** Milliseconds since 1970. */
          endedMs?: number;
          /** Rows that were read. */
          looked: number;
          /** Of them, those that cannot be read, have a wrong checksum, or are missing though another row names them. */
          damaged: number;
          /** The damaged ones by table of the store. */
          tables: Record<string, number>;
          /** The first of them. */
          examples: {
            /** Table of the store. */
            table: string;
            /** Key of the row. */
            key: string;
            /** The fault of the row. */
            reason: string;
          }[];
        };
        /** A round of the row check. */
        last?: {
          /** Milliseconds since 1970. */
          startedMs: number;
          /** Milliseconds since 1970. */
          endedMs?: number;
          /** Rows that were read. */
          looked: number;
          /** Of them, those that cannot be read, have a wrong checksum, or are missing though another row names them. */
          damaged: number;
          /** The damaged ones by table of the store. */
          tables: Record<string, number>;
          /** The first of them. */
          examples: {
            /** Table of the store. */
            table: string;
            /** Key of the row. */
            key: string;
            /** The fault of the row. */
            reason: string;
          }[];
        };
        /** No round came to its end for a day. */
        late: boolean;
      };
    };
  };
  /**
   * Begin to compare indexes, edges and contents of the tenant with what they follow from, and mend them.
   *
   * `POST /cluster/scrub`, permission: cluster:write.
   *
   * @example
   * await client.call("postClusterScrub", { query: { rate: 100 } });
   */
  postClusterScrub: {
    request: {
      query?: {
        /** Comparisons with the store a second, at most; 2000 when absent. 1 to 100000. */
        rate?: number;
      };
    };
    message: {
      /** Id of the scrub. */
      id: string;
      /** Who began it. */
      user: string;
      /** `running`, `done`, `stopped` or `failed`. */
      state: string;
      /** Why it failed. */
      message: string;
      /** Milliseconds since 1970. */
      startedMs: number;
      /** Milliseconds since 1970. */
      endedMs?: number;
      /** Comparisons with the store a second, at most. */
      rate: number;
      /** `objects`, `indexes`, `sources`, `targets` or `contents`. */
      step: string;
      /** Objects, rows of indexes, edges at their sources and at their targets, and contents so far. */
      looked: {
        /** Objects. */
        objects: number;
        /** Rows of indexes. */
        indexes: number;
        /** Edges at their sources. */
        sources: number;
        /** Edges at their targets. */
        targets: number;
        /** Contents of files and depots. */
        contents: number;
      };
      /** Of contents. */
      bytes: number;
      /** Rows of indexes and edges that were missing, and are added. */
      missing: number;
      /** Rows of indexes and edges that nothing stands behind, and are removed. */
      superfluous: number;
      /** Contents that are not what their digest says; nothing mends them. */
      damaged: number;
      /** The first of what was wrong. */
      examples: string[];
    };
  };
  /**
   * Stop the scrub of the tenant that is under way.
   *
   * `DELETE /cluster/scrub`, permission: cluster:write.
   *
   * @example
   * await client.call("deleteClusterScrub");
   */
  deleteClusterScrub: {
    request: Record<string, never>;
    message: {
      /** Id of the scrub. */
      id: string;
      /** Who began it. */
      user: string;
      /** `running`, `done`, `stopped` or `failed`. */
      state: string;
      /** Why it failed. */
      message: string;
      /** Milliseconds since 1970. */
      startedMs: number;
      /** Milliseconds since 1970. */
      endedMs?: number;
      /** Comparisons with the store a second, at most. */
      rate: number;
      /** `objects`, `indexes`, `sources`, `targets` or `contents`. */
      step: string;
      /** Objects, rows of indexes, edges at their sources and at their targets, and contents so far. */
      looked: {
        /** Objects. */
        objects: number;
        /** Rows of indexes. */
        indexes: number;
        /** Edges at their sources. */
        sources: number;
        /** Edges at their targets. */
        targets: number;
        /** Contents of files and depots. */
        contents: number;
      };
      /** Of contents. */
      bytes: number;
      /** Rows of indexes and edges that were missing, and are added. */
      missing: number;
      /** Rows of indexes and edges that nothing stands behind, and are removed. */
      superfluous: number;
      /** Contents that are not what their digest says; nothing mends them. */
      damaged: number;
      /** The first of what was wrong. */
      examples: string[];
    };
  };
  /**
   * The settings of the controller that answers, without secrets; for the first tenant only.
   *
   * `GET /cluster/settings`, permission: cluster:read.
   *
   * @example
   * await client.call("getClusterSettings");
   */
  getClusterSettings: {
    request: Record<string, never>;
    message: {
      /** Name of the setting. */
      name: string;
      /** Its text; absent if it is not given, and for secrets. */
      value?: string;
      /** The value, or the way to it, if none is given. */
      default: string;
      /** True: a variable or the file gives it. */
      given: boolean;
    }[];
  };
  /**
   * Tenants: all of them for administrators of the first one, the own one for others.
   *
   * `GET /companys`, permission: tenants:read.
   *
   * @example
   * await client.call("getCompanys");
   */
  getCompanys: {
    request: {
      query?: {
        /** Deleted ones whose data is kept, instead of those that are there. */
        deleted?: boolean;
      };
    };
    message: {
      /** Name of the tenant. */
      name: string;
      /** Full name for people; empty: none. */
      fullname: string;
      /** Name space of its classes and keys. */
      ospace: string;
      /** Title that clients show; empty: none. */
      title: string;
      /** Address of the tenant's site; empty: none. */
      web: string;
      /** Data URI or address of an image; empty: none. */
      logo: string;
      /** Data URI or address of an image; empty: none. */
      icon: string;
      /** Quotas and replication factor, as texts. */
      config: Record<string, string>;
      /** JSON: expire, server, agent; -1 is no limit. */
      license: string;
      /** What it has, when it has a quota and was counted. */
      use?: {
        /** Number of objects. */
        objects: number;
        /** Bytes of stored data. */
        bytes: number;
        /** When it was counted; growth since is added. */
        measuredMs: number;
        /** The quotas that are exceeded: objects, bytes. */
        beyond: string[];
      };
      /** Of a deleted one: when its data goes. */
      purgeAtMs?: number;
    }[];
  };
  /**
   * Changes members of a tenant.
   *
   * `PUT /companys`, permission: tenants:write.
   *
   * @example
   * await client.call("putCompanys", { body: { name: "acme", title: "Acme" } });
   */
  putCompanys: {
    request: {
      body: {
        /** Name of the tenant. */
        name: string;
        /** Full name for people. At most 1024 characters. */
        fullname?: string;
        /** Name space: a slash and one name; the name when absent. */
        ospace?: string;
        /** Title that clients show. At most 1024 characters. */
        title?: string;
        /** Address of the tenant's site. At most 1024 characters. */
        web?: string;
        /** Data URI with an image in base64, or the address of one. */
        logo?: string;
        /** Data URI with an image in base64, or the address of one. */
        icon?: string;
        /** `replication_factor` is settled when it is made; `max_objects`, `max_bytes`, `max_agents` (hosts with an agent) and `max_calls` (at once, on each controller) are quotas, an empty text is none. */
        config?: {
          /** Copies of each row, settled when the tenant is made; a cluster only. */
          replication_factor?: string;
          /** Most objects; empty: no quota. */
          max_objects?: string;
          /** Most bytes of stored data; empty: no quota. */
          max_bytes?: string;
          /** Most hosts with an agent; empty: no quota. */
          max_agents?: string;
          /** Most calls at once, on each controller; empty: 256. */
          max_calls?: string;
        } & Record<string, unknown>;
      };
    };
    message: {
      /** Name of the tenant. */
      name: string;
      /** Full name for people; empty: none. */
      fullname: string;
      /** Name space of its classes and keys. */
      ospace: string;
      /** Title that clients show; empty: none. */
      title: string;
      /** Address of the tenant's site; empty: none. */
      web: string;
      /** Data URI or address of an image; empty: none. */
      logo: string;
      /** Data URI or address of an image; empty: none. */
      icon: string;
      /** Quotas and replication factor, as texts. */
      config: Record<string, string>;
      /** JSON: expire, server, agent; -1 is no limit. */
      license: string;
      /** What it has, when it has a quota and was counted. */
      use?: {
        /** Number of objects. */
        objects: number;
        /** Bytes of stored data. */
        bytes: number;
        /** When it was counted; growth since is added. */
        measuredMs: number;
        /** The quotas that are exceeded: objects, bytes. */
        beyond: string[];
      };
      /** Of a deleted one: when its data goes. */
      purgeAtMs?: number;
    };
  };
  /**
   * Makes a tenant with its administrator admin; the message has the password when it was generated.
   *
   * `POST /companys`, permission: tenants:write.
   *
   * @example
   * await client.call("postCompanys", {
   *   body: { name: "acme", fullname: "Acme Ltd", password: "correct horse battery staple" },
   * });
   */
  postCompanys: {
    request: {
      body: {
        /** Name of the tenant: lower-case letters, digits and _. */
        name: string;
        /** Full name for people. At most 1024 characters. */
        fullname?: string;
        /** Name space: a slash and one name; the name when absent. */
        ospace?: string;
        /** Title that clients show. At most 1024 characters. */
        title?: string;
        /** Address of the tenant's site. At most 1024 characters. */
        web?: string;
        /** Data URI with an image in base64, or the address of one. */
        logo?: string;
        /** Data URI with an image in base64, or the address of one. */
        icon?: string;
        /** `replication_factor` is settled when it is made; `max_objects`, `max_bytes`, `max_agents` (hosts with an agent) and `max_calls` (at once, on each controller) are quotas, an empty text is none. */
        config?: {
          /** Copies of each row, settled when the tenant is made; a cluster only. */
          replication_factor?: string;
          /** Most objects; empty: no quota. */
          max_objects?: string;
          /** Most bytes of stored data; empty: no quota. */
          max_bytes?: string;
          /** Most hosts with an agent; empty: no quota. */
          max_agents?: string;
          /** Most calls at once, on each controller; empty: 256. */
          max_calls?: string;
        } & Record<string, unknown>;
        /** Of the administrator; generated when absent. At least 8 characters. */
        password?: string;
      };
    };
    message: {
      /** Name of the administrator. */
      username: string;
      /** When it was generated: told once. */
      password?: string;
    };
  };
  /**
   * One tenant.
   *
   * `GET /companys/{name}`, permission: tenants:read.
   *
   * @example
   * await client.call("getCompanysByName", { path: { name: "acme" } });
   */
  getCompanysByName: {
    request: {
      path: {
        /** Name of the tenant. */
        name: string;
      };
    };
    message: {
      /** Name of the tenant. */
      name: string;
      /** Full name for people; empty: none. */
      fullname: string;
      /** Name space of its classes and keys. */
      ospace: string;
      /** Title that clients show; empty: none. */
      title: string;
      /** Address of the tenant's site; empty: none. */
      web: string;
      /** Data URI or address of an image; empty: none. */
      logo: string;
      /** Data URI or address of an image; empty: none. */
      icon: string;
      /** Quotas and replication factor, as texts. */
      config: Record<string, string>;
      /** JSON: expire, server, agent; -1 is no limit. */
      license: string;
      /** What it has, when it has a quota and was counted. */
      use?: {
        /** Number of objects. */
        objects: number;
        /** Bytes of stored data. */
        bytes: number;
        /** When it was counted; growth since is added. */
        measuredMs: number;
        /** The quotas that are exceeded: objects, bytes. */
        beyond: string[];
      };
      /** Of a deleted one: when its data goes. */
      purgeAtMs?: number;
    };
  };
  /**
   * Deletes a tenant: absent for every call at once, its data kept for a while.
   *
   * `DELETE /companys/{name}`, permission: tenants:write.
   *
   * @example
   * await client.call("deleteCompanysByName", { path: { name: "acme" } });
   */
  deleteCompanysByName: {
    request: {
      path: {
        /** Name of the tenant. */
        name: string;
      };
      query?: {
        /** Removes the data soon, without keeping it for a while. */
        purge?: boolean;
      };
    };
    message: string;
  };
  /**
   * Has a deleted tenant back while its data is kept.
   *
   * `POST /companys/{name}/restore`, permission: tenants:write.
   *
   * @example
   * await client.call("postCompanysByNameRestore", { path: { name: "acme" } });
   */
  postCompanysByNameRestore: {
    request: {
      path: {
        /** Name of the tenant. */
        name: string;
      };
    };
    message: {
      /** Name of the tenant. */
      name: string;
      /** Full name for people; empty: none. */
      fullname: string;
      /** Name space of its classes and keys. */
      ospace: string;
      /** Title that clients show; empty: none. */
      title: string;
      /** Address of the tenant's site; empty: none. */
      web: string;
      /** Data URI or address of an image; empty: none. */
      logo: string;
      /** Data URI or address of an image; empty: none. */
      icon: string;
      /** Quotas and replication factor, as texts. */
      config: Record<string, string>;
      /** JSON: expire, server, agent; -1 is no limit. */
      license: string;
      /** What it has, when it has a quota and was counted. */
      use?: {
        /** Number of objects. */
        objects: number;
        /** Bytes of stored data. */
        bytes: number;
        /** When it was counted; growth since is added. */
        measuredMs: number;
        /** The quotas that are exceeded: objects, bytes. */
        beyond: string[];
      };
      /** Of a deleted one: when its data goes. */
      purgeAtMs?: number;
    };
  };
  /**
   * Delete an entry, or a directory with everything below it.
   *
   * `POST /config/del`, permission: config:write.
   *
   * @example
   * await client.call("postConfigDel", { body: { key: "/matrix/etc/mail" } });
   */
  postConfigDel: {
    request: {
      body: {
        /** A key such as /matrix/etc/mail. At least 1 character. */
        key: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * What changed between two versions of an entry.
   *
   * `GET /config/diff`, permission: config:read.
   *
   * @example
   * await client.call("getConfigDiff", { query: { key: "/matrix/etc/mail", from: 0, to: 1 } });
   */
  getConfigDiff: {
    request: {
      query: {
        /** A key such as /matrix/etc/mail. At least 1 character. */
        key: string;
        /** A version; 0: from nothing. At least 0. */
        from: number;
        /** A version. At least 1. */
        to: number;
      };
    };
    message: {
      /** A version of an entry. */
      from?: {
        /** Counts the changes of the key, deletes among them. */
        version: number;
        /** True: this change removed the key. */
        deleted?: boolean;
        /** Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it. */
        value?: string;
        /** True: the value is sealed and never shown. */
        secret?: boolean;
        /** User who wrote this version. */
        author?: string;
        /** Milliseconds since 1970. */
        changed?: number;
        /** Milliseconds since 1970. */
        expires?: number;
      };
      /** A version of an entry. */
      to: {
        /** Counts the changes of the key, deletes among them. */
        version: number;
        /** True: this change removed the key. */
        deleted?: boolean;
        /** Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it. */
        value?: string;
        /** True: the value is sealed and never shown. */
        secret?: boolean;
        /** User who wrote this version. */
        author?: string;
        /** Milliseconds since 1970. */
        changed?: number;
        /** Milliseconds since 1970. */
        expires?: number;
      };
      /** A unified difference of the values. */
      patch: string;
    };
  };
  /**
   * Everything at and below a key as a JSON file that can be imported.
   *
   * `GET /config/export`, permission: config:read.
   *
   * @example
   * await client.call("getConfigExport", { query: { key: "/matrix/etc" } });
   */
  getConfigExport: {
    request: {
      query?: {
        /** A key such as /matrix/etc/mail; everything when absent. */
        key?: string;
        /** Keys are written relative to the given one, so that they can be imported elsewhere. */
        relative?: boolean;
      };
    };
    message: {
      /** Key of the entry. */
      key: string;
      /** ******** stands for a secret. */
      value: string;
      /** The value is secret. */
      secret?: boolean;
      /** ISO 8601, in UTC. */
      expires?: string;
    }[];
  };
  /**
   * An entry of configuration, or a directory with everything below it.
   *
   * `GET /config/get`, permission: config:read.
   *
   * @example
   * await client.call("getConfigGet", { query: { key: "/matrix/etc/mail" } });
   */
  getConfigGet: {
    request: {
      query: {
        /** A key such as /matrix/etc/mail, or / for all. At least 1 character. */
        key: string;
        /** The answer may be as old as two seconds, and comes sooner; without it, it is what was written last. */
        cached?: boolean;
      };
    };
    message: {
      /** Key of the entry or directory. */
      key: string;
      /** Of an entry; ******** stands for a secret. */
      value?: string;
      /** The value is secret. */
      secret?: boolean;
      /** Seconds that are left. */
      ttl?: number;
      /** There are nodes below. */
      dir?: boolean;
      /** Nodes of this same form. */
      nodes?: Record<string, unknown>[];
    };
  };
  /**
   * Versions of an entry with their authors and times.
   *
   * `GET /config/history`, permission: config:read.
   *
   * @example
   * await client.call("getConfigHistory", { query: { key: "/matrix/etc/mail" } });
   */
  getConfigHistory: {
    request: {
      query: {
        /** A key such as /matrix/etc/mail. At least 1 character. */
        key: string;
      };
    };
    message: {
      /** Counts the changes of the key, deletes among them. */
      version: number;
      /** True: this change removed the key. */
      deleted?: boolean;
      /** Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it. */
      value?: string;
      /** True: the value is sealed and never shown. */
      secret?: boolean;
      /** User who wrote this version. */
      author?: string;
      /** Milliseconds since 1970. */
      changed?: number;
      /** Milliseconds since 1970. */
      expires?: number;
    }[];
  };
  /**
   * Takes entries of a JSON file in, all or nothing, or plans it.
   *
   * `POST /config/import`, permission: config:write.
   *
   * @example
   * await client.call("postConfigImport", {
   *   body: {
   *     key: "/matrix/etc",
   *     uploadfile: {
   *       name: "example.txt",
   *       content: "[{\"key\": \"/matrix/etc/relay\", \"value\": \"relay.example.com\"}]",
   *     },
   *   },
   * });
   */
  postConfigImport: {
    request: {
      body: {
        /** What relative keys of the file are relative to; whole ones outside it are placed below it, in place of their longest common folder. */
        key?: string;
        /** Only tells what would be done. */
        plan?: boolean;
        /** Encoding of the file, such as gbk; UTF-8 when absent. */
        encoding?: string;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: {
      /** Entries of the file. */
      total: number;
      /** Entries that are new. */
      created: number;
      /** Entries that have another value now. */
      updated: number;
      /** Entries that had this value already. */
      unchanged: number;
      /** Told in the warnings. */
      skipped: number;
      /** Of a plan: the first thousand. */
      changes?: {
        /** Key of the entry. */
        key: string;
        /** create, update, unchanged or skip. */
        action: string;
      }[];
    };
  };
  /**
   * Entries at and below a key, page by page in the order of keys; meta.next leads on.
   *
   * `GET /config/list`, permission: config:read.
   *
   * @example
   * await client.call("getConfigList", { query: { key: "/matrix/etc" } });
   */
  getConfigList: {
    request: {
      query?: {
        /** A key such as /matrix/etc/mail; everything when absent. */
        key?: string;
        /** The member next of the answer's meta: the page behind it. */
        after?: string;
        /** Entries in a page; 200 when absent. 1 to 1000. */
        limit?: number;
      };
    };
    message: {
      /** Key of the entry. */
      key: string;
      /** Counts the changes of the key, deletes among them. */
      version?: number;
      /** Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it. */
      value?: string;
      /** True: the value is sealed and never shown. */
      secret?: boolean;
      /** User who wrote this version. */
      author?: string;
      /** Milliseconds since 1970. */
      changed?: number;
      /** Milliseconds since 1970. */
      expires?: number;
    }[];
    cursor: true;
  };
  /**
   * Make an entry hold what it held in an earlier version.
   *
   * `POST /config/rollback`, permission: config:write.
   *
   * @example
   * await client.call("postConfigRollback", { body: { key: "/matrix/etc/mail", version: 1 } });
   */
  postConfigRollback: {
    request: {
      body: {
        /** A key such as /matrix/etc/mail. At least 1 character. */
        key: string;
        /** What the key is to hold again; a delete deletes it. At least 1. */
        version: number;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * What the values of a key may be, by its schema or that of the nearest directory above.
   *
   * `GET /config/schema`, permission: config:read.
   *
   * @example
   * await client.call("getConfigSchema", { query: { key: "/matrix/etc/port" } });
   */
  getConfigSchema: {
    request: {
      query: {
        /** A key or a directory, such as /matrix/etc/mail. At least 1 character. */
        key: string;
      };
    };
    message: {
      /** What it was made for: the key that was asked for, or the nearest above it. */
      key: string;
      /** string, integer, number, boolean (true or false) or json (any JSON text). */
      type: "string" | "integer" | "number" | "boolean" | "json";
      /** Of integer and number. */
      minimum?: number;
      /** Of integer and number. */
      maximum?: number;
      /** Characters of a string. At least 0. */
      minLength?: number;
      /** Characters of a string. At least 0. */
      maxLength?: number;
      /** The values there may be, as they are written. 1 to 1000 items. */
      enum?: string[];
      /** A regular expression that is found in the value; ^ and $ bind it to the whole. 1 to 8000 characters. */
      pattern?: string;
      /** Every value is sealed and shown as ********. */
      secret?: boolean;
      /** Counts the changes of the schema. */
      version?: number;
      /** User who wrote the schema. */
      author?: string;
      /** Milliseconds since 1970. */
      changed?: number;
    };
  };
  /**
   * Say what the values of a key, or of all keys below a directory, may be from now on.
   *
   * `POST /config/schema`, permission: config:write.
   *
   * @example
   * await client.call("postConfigSchema", {
   *   body: { key: "/matrix/etc/port", type: "integer", minimum: 1, maximum: 65535 },
   * });
   */
  postConfigSchema: {
    request: {
      body: {
        /** A key or a directory, such as /matrix/etc/mail. At least 1 character. */
        key: string;
        /** string, integer, number, boolean (true or false) or json (any JSON text). */
        type: "string" | "integer" | "number" | "boolean" | "json";
        /** Of integer and number. */
        minimum?: number;
        /** Of integer and number. */
        maximum?: number;
        /** Characters of a string. At least 0. */
        minLength?: number;
        /** Characters of a string. At least 0. */
        maxLength?: number;
        /** The values there may be, as they are written. 1 to 1000 items. */
        enum?: readonly string[];
        /** A regular expression that is found in the value; ^ and $ bind it to the whole. 1 to 8000 characters. */
        pattern?: string;
        /** Every value is sealed and shown as ********. */
        secret?: boolean;
      };
    };
    message: string;
  };
  /**
   * Remove the schema of a key or a directory.
   *
   * `DELETE /config/schema`, permission: config:write.
   *
   * @example
   * await client.call("deleteConfigSchema", { query: { key: "/matrix/etc/port" } });
   */
  deleteConfigSchema: {
    request: {
      query: {
        /** A key or a directory, such as /matrix/etc/mail. At least 1 character. */
        key: string;
      };
    };
    message: string;
  };
  /**
   * Write an entry of configuration.
   *
   * `POST /config/set`, permission: config:write.
   *
   * @example
   * await client.call("postConfigSet", { body: { key: "/matrix/etc/mail", value: "smtp.example.com" } });
   */
  postConfigSet: {
    request: {
      body: {
        /** A key such as /matrix/etc/mail. At least 1 character. */
        key: string;
        /** ******** keeps the secret that is there. */
        value: string;
        /** Seconds; 0, -1 or none: it does not expire. -1 to 3153600000. */
        ttl?: number;
        /** Whether the value is sealed and never shown again; when absent, as the one that is there. */
        secret?: boolean;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * What a rule had to say, the oldest first, from a position on.
   *
   * `GET /consolelog/rule`, permission: consolelog:read.
   *
   * @example
   * await client.call("getConsolelogRule", { query: { name: "/matrix/rules/visit", limit: 100 } });
   */
  getConsolelogRule: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
        /**
         * Entries in a page. 1 to 1000.
         * @default 200
         */
        limit?: number;
      };
    };
    message: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove what a rule had to say.
   *
   * `DELETE /consolelog/rule`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogRule", { query: { name: "/matrix/rules/visit" } });
   */
  deleteConsolelogRule: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
      };
    };
    message: string;
  };
  /**
   * Follows what a rule has to say, from a position on.
   *
   * `GET /consolelog/rule/follow`, permission: consolelog:read.
   *
   * @example
   * for await (const { data } of client.events("getConsolelogRuleFollow", { query: { name: "/matrix/rules/visit" } })) console.log(data);
   */
  getConsolelogRuleFollow: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    event: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove all entries of the kind rule.
   *
   * `DELETE /consolelog/rule/truncate`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogRuleTruncate");
   */
  deleteConsolelogRuleTruncate: {
    request: Record<string, never>;
    message: string;
  };
  /**
   * What a script had to say, the oldest first, from a position on.
   *
   * `GET /consolelog/serverjs`, permission: consolelog:read.
   *
   * @example
   * await client.call("getConsolelogServerjs", { query: { name: "greet.js", limit: 100 } });
   */
  getConsolelogServerjs: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
        /**
         * Entries in a page. 1 to 1000.
         * @default 200
         */
        limit?: number;
      };
    };
    message: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove what a script had to say.
   *
   * `DELETE /consolelog/serverjs`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogServerjs", { query: { name: "greet.js" } });
   */
  deleteConsolelogServerjs: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
      };
    };
    message: string;
  };
  /**
   * Follows what a script has to say, from a position on.
   *
   * `GET /consolelog/serverjs/follow`, permission: consolelog:read.
   *
   * @example
   * for await (const { data } of client.events("getConsolelogServerjsFollow", { query: { name: "greet.js" } })) console.log(data);
   */
  getConsolelogServerjsFollow: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    event: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove all entries of the kind serverjs.
   *
   * `DELETE /consolelog/serverjs/truncate`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogServerjsTruncate");
   */
  deleteConsolelogServerjsTruncate: {
    request: Record<string, never>;
    message: string;
  };
  /**
   * What a trigger had to say, the oldest first, from a position on.
   *
   * `GET /consolelog/trigger`, permission: consolelog:read.
   *
   * @example
   * await client.call("getConsolelogTrigger", { query: { name: "/matrix/visit#count", limit: 100 } });
   */
  getConsolelogTrigger: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
        /**
         * Entries in a page. 1 to 1000.
         * @default 200
         */
        limit?: number;
      };
    };
    message: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove what a trigger had to say.
   *
   * `DELETE /consolelog/trigger`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogTrigger", { query: { name: "/matrix/visit#count" } });
   */
  deleteConsolelogTrigger: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
      };
    };
    message: string;
  };
  /**
   * Follows what a trigger has to say, from a position on.
   *
   * `GET /consolelog/trigger/follow`, permission: consolelog:read.
   *
   * @example
   * for await (const { data } of client.events("getConsolelogTriggerFollow", { query: { name: "/matrix/visit#count" } })) console.log(data);
   */
  getConsolelogTriggerFollow: {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    event: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Remove all entries of the kind trigger.
   *
   * `DELETE /consolelog/trigger/truncate`, permission: consolelog:write.
   *
   * @example
   * await client.call("deleteConsolelogTriggerTruncate");
   */
  deleteConsolelogTriggerTruncate: {
    request: Record<string, never>;
    message: string;
  };
  /**
   * Names of the extension tables.
   *
   * `GET /extend`, permission: tables:read.
   *
   * @example
   * await client.call("getExtend");
   */
  getExtend: {
    request: Record<string, never>;
    message: string[];
  };
  /**
   * Rows of an extension table.
   *
   * `GET /extend/{name}`, permission: tables:read.
   *
   * @example
   * await client.call("getExtendByName", { path: { name: "sites" } });
   */
  getExtendByName: {
    request: {
      path: {
        /** Name of the table. */
        name: string;
      };
    };
    message: Record<string, unknown>[];
  };
  /**
   * Replace rows of equal key and add the others; the message is the table's rows.
   *
   * `PUT /extend/{name}`, permission: tables:write.
   *
   * @example
   * await client.call("putExtendByName", { path: { name: "sites" }, body: { items: [{ key: "south", city: "Rome" }] } });
   */
  putExtendByName: {
    request: {
      path: {
        /** Name of the table. */
        name: string;
      };
      body: {
        /** Rows; `key`, a text or a number, is optional. */
        items: readonly Record<string, unknown>[];
      };
    };
    message: Record<string, unknown>[];
    revised: true;
  };
  /**
   * Make an extension table, or replace all of its rows; the message is its rows.
   *
   * `POST /extend/{name}`, permission: tables:write.
   *
   * @example
   * await client.call("postExtendByName", { path: { name: "sites" }, body: { items: [{ key: "north", city: "Oslo" }] } });
   */
  postExtendByName: {
    request: {
      path: {
        /** Name of the table. */
        name: string;
      };
      body: {
        /** Rows; `key`, a text or a number, is optional. */
        items: readonly Record<string, unknown>[];
      };
    };
    message: Record<string, unknown>[];
    revised: true;
  };
  /**
   * Remove an extension table; the message is an empty list.
   *
   * `DELETE /extend/{name}`, permission: tables:write.
   *
   * @example
   * await client.call("deleteExtendByName", { path: { name: "sites" } });
   */
  deleteExtendByName: {
    request: {
      path: {
        /** Name of the table. */
        name: string;
      };
    };
    message: Record<string, unknown>[];
    revised: true;
  };
  /**
   * Former contents of a file that was replaced or removed, newest first.
   *
   * `GET /files/history/{path}`, permission: files:read.
   *
   * @example
   * await client.call("getFilesHistoryByPath", { path: { path: "reports/day.csv" } });
   */
  getFilesHistoryByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: {
      /** Names it in a restore. */
      key: string;
      /** Path at which it was. */
      path: string;
      /** Kind of entry. */
      type: "file" | "dir";
      /** What ended it: a write of other content, or a removal. */
      cause: "replaced" | "removed";
      /** When it was replaced or removed, in milliseconds since 1970. */
      time: number;
      /** Who replaced or removed it; empty when a rule hides the owner. */
      user: string;
      /** Bytes of the content; 0 for a folder, and when a rule hides them. */
      size: number;
      /** Who wrote the content; empty when a rule hides it. */
      owner: string;
      /** When the content was written, in milliseconds since 1970. */
      modified: number;
    }[];
  };
  /**
   * Purge former contents of a file, or a removed folder with all that was removed with it.
   *
   * `DELETE /files/history/{path}`, permission: files:write.
   *
   * @example
   * await client.call("deleteFilesHistoryByPath", {
   *   path: { path: "reports/day.csv" },
   *   query: { key: "(the key of a former content)" },
   * });
   */
  deleteFilesHistoryByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** As of a restore. Absent: all former contents of the file; its content at the moment stays. */
        key?: string;
      };
    };
    message: number;
  };
  /**
   * Restore a former content of a file, or a removed folder with all that was removed with it.
   *
   * `POST /files/restore/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFilesRestoreByPath", {
   *   path: { path: "reports/day.csv" },
   *   body: { key: "(the key of a former content)" },
   * });
   */
  postFilesRestoreByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Key of the former file or folder, as the history or the trash answers it. */
        key: string;
      };
    };
    message: number;
  };
  /**
   * Removed files and folders, newest first, page by page; meta.next leads on.
   *
   * `GET /files/trash`, permission: files:read.
   *
   * @example
   * await client.call("getFilesTrash", { query: { path: "/reports" } });
   */
  getFilesTrash: {
    request: {
      query?: {
        /** Folder; all of the space when absent. */
        path?: string;
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** The member next of the answer's meta: the page behind it. */
        after?: string;
        /** Entries in a page; 100 when absent. 1 to 1000. */
        limit?: number;
      };
    };
    message: {
      /** Names it in a restore. */
      key: string;
      /** Path at which it was. */
      path: string;
      /** Kind of entry. */
      type: "file" | "dir";
      /** What ended it: a write of other content, or a removal. */
      cause: "replaced" | "removed";
      /** When it was replaced or removed, in milliseconds since 1970. */
      time: number;
      /** Who replaced or removed it; empty when a rule hides the owner. */
      user: string;
      /** Bytes of the content; 0 for a folder, and when a rule hides them. */
      size: number;
      /** Who wrote the content; empty when a rule hides it. */
      owner: string;
      /** When the content was written, in milliseconds since 1970. */
      modified: number;
    }[];
    cursor: true;
  };
  /**
   * Versions of a file or folder, page by page in the order of names; meta.next leads on.
   *
   * `GET /files/versions/{path}`, permission: files:read.
   *
   * @example
   * await client.call("getFilesVersionsByPath", { path: { path: "reports" } });
   */
  getFilesVersionsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** The member next of the answer's meta: the page behind it. */
        after?: string;
        /** Versions in a page; 100 when absent. 1 to 1000. */
        limit?: number;
      };
    };
    message: {
      /** Name of the version. */
      name: string;
      /** Who kept it. */
      user: string;
      /** When it was kept, in milliseconds since 1970. */
      time: number;
      /** Files and folders, the root included; absent when rules hide some files or columns from the caller. */
      entries?: number;
      /** Bytes of all contents; absent like entries. */
      bytes?: number;
    }[];
    cursor: true;
  };
  /**
   * Delete a version of a file or folder; the files themselves stay.
   *
   * `DELETE /files/versions/{path}`, permission: files:write.
   *
   * @example
   * await client.call("deleteFilesVersionsByPath", { path: { path: "reports" }, query: { version: "monday" } });
   */
  deleteFilesVersionsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Name of the version: no slash, at most 128 bytes. */
        version: string;
      };
    };
    message: string;
  };
  /**
   * List the root folder.
   *
   * `GET /fs`, permission: files:read.
   *
   * @example
   * await client.call("getFs", { query: { type: "dir" } });
   */
  getFs: {
    request: {
      query: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Only with type=dir: a page of at most so many entries, in the order of names. All entries, in no order, when absent. 1 to 10000. */
        limit?: number;
        /** Only with limit: the member next of the answer's meta, for the page behind it. Absent: the first page. */
        after?: string;
        /** Without effect: clients of earlier versions send it. */
        index?: boolean;
        /** dir: what lies in the folder; check: whether it is there. */
        type: string;
      };
    };
    message: string | boolean | string[] | {
      /** Id of the file as an object. */
      id: string;
      /** Class of the file as an object. */
      class: string;
      /** Last part of the path. */
      name: string;
      /** Path of the folder that it is in. */
      parent: string;
      /** Whole path. */
      fullname: string;
      /** dir for a folder. */
      ftype: string;
      /** True for a folder. */
      isdir: boolean;
      /** JSON text, or empty. */
      attr: string;
      /** Bytes of the content; 0 for a folder. */
      size: number;
      /** Milliseconds. */
      ctime: number;
      /** Last change of the content, milliseconds. */
      mtime: number;
      /** Last change of the content, its attributes or tags, milliseconds. */
      vtime: number;
      /** User who wrote the content, or made the folder; empty if rules hide it. */
      owner: string;
      /** The same as owner. */
      username: string;
      /** Search in the content: empty for a file that is not included, indexed, indexing, or why it, or a part of it, is not found. */
      status: string;
      /** Tags of the file or folder. */
      tags: string[];
      /** Always false. */
      ispublic: boolean;
      /** For If-Match of a change. */
      revision: string;
      /** SHA-256 of the content in hexadecimal digits. Absent for a folder, and if rules hide it. */
      digest?: string;
    }[];
    content: true;
    cursor: true;
  };
  /**
   * Upload files into the root folder.
   *
   * `POST /fs`, permission: files:write.
   *
   * @example
   * await client.call("postFs", { body: { uploadfile: { name: "example.txt", content: "Back at eight.\n" } } });
   */
  postFs: {
    request: {
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Attributes: the JSON text of an object, empty for none. */
        attr?: string;
        /** Tags of the file or folder. */
        tags?: readonly string[];
        /** true: include the content in the search, now and after later writes; of a folder all files below. false: take the file out of it. Absent: as it was. */
        index?: boolean;
        /** The content. Absent: a file that is there keeps its own, a new one is empty. */
        data?: string;
        /** dir: a folder; attr, tag: set only these; else the type of the file, its extension. */
        type?: string;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Read a file or what is kept of it, list a folder, or ask whether it is there.
   *
   * `GET /fs/{path}`, permission: files:read.
   *
   * @example
   * await client.call("getFsByPath", { path: { path: "script/greet.js" } });
   */
  getFsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Only with type=dir: a page of at most so many entries, in the order of names. All entries, in no order, when absent. 1 to 10000. */
        limit?: number;
        /** Only with limit: the member next of the answer's meta, for the page behind it. Absent: the first page. */
        after?: string;
        /** Without effect: clients of earlier versions send it. */
        index?: boolean;
        /** dir: what lies in the folder; file: the text as message; open, download: the bytes; check: whether it is there; attr: its attributes, JSON text; tag: its tags. open when absent. */
        type?: string;
      };
    };
    message: string | boolean | string[] | {
      /** Id of the file as an object. */
      id: string;
      /** Class of the file as an object. */
      class: string;
      /** Last part of the path. */
      name: string;
      /** Path of the folder that it is in. */
      parent: string;
      /** Whole path. */
      fullname: string;
      /** dir for a folder. */
      ftype: string;
      /** True for a folder. */
      isdir: boolean;
      /** JSON text, or empty. */
      attr: string;
      /** Bytes of the content; 0 for a folder. */
      size: number;
      /** Milliseconds. */
      ctime: number;
      /** Last change of the content, milliseconds. */
      mtime: number;
      /** Last change of the content, its attributes or tags, milliseconds. */
      vtime: number;
      /** User who wrote the content, or made the folder; empty if rules hide it. */
      owner: string;
      /** The same as owner. */
      username: string;
      /** Search in the content: empty for a file that is not included, indexed, indexing, or why it, or a part of it, is not found. */
      status: string;
      /** Tags of the file or folder. */
      tags: string[];
      /** Always false. */
      ispublic: boolean;
      /** For If-Match of a change. */
      revision: string;
      /** SHA-256 of the content in hexadecimal digits. Absent for a folder, and if rules hide it. */
      digest?: string;
    }[];
    content: true;
    cursor: true;
  };
  /**
   * Write a file as a text or as one part of the form, make a folder, or set attributes or tags.
   *
   * `PUT /fs/{path}`, permission: files:write.
   *
   * @example
   * await client.call("putFsByPath", {
   *   path: { path: "script/greet.js" },
   *   body: { data: "OUTPUT = { greeting: 'Hello, ' + INPUT }" },
   * });
   */
  putFsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Attributes: the JSON text of an object, empty for none. */
        attr?: string;
        /** Tags of the file or folder. */
        tags?: readonly string[];
        /** true: include the content in the search, now and after later writes; of a folder all files below. false: take the file out of it. Absent: as it was. */
        index?: boolean;
        /** The content. Absent: a file that is there keeps its own, a new one is empty. */
        data?: string;
        /** dir: a folder; attr, tag: set only these; else the type of the file, its extension. */
        type?: string;
        uploadfile?: readonly Upload[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Upload files into a folder; without any, as PUT.
   *
   * `POST /fs/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFsByPath", {
   *   path: { path: "reports" },
   *   body: { uploadfile: [{ name: "example.txt", content: "/start,200\n/about,404\n" }] },
   * });
   */
  postFsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Attributes: the JSON text of an object, empty for none. */
        attr?: string;
        /** Tags of the file or folder. */
        tags?: readonly string[];
        /** true: include the content in the search, now and after later writes; of a folder all files below. false: take the file out of it. Absent: as it was. */
        index?: boolean;
        /** The content. Absent: a file that is there keeps its own, a new one is empty. */
        data?: string;
        /** dir: a folder; attr, tag: set only these; else the type of the file, its extension. */
        type?: string;
        uploadfile?: readonly Upload[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Remove a file, or a folder with all below it.
   *
   * `DELETE /fs/{path}`, permission: files:write.
   *
   * @example
   * await client.call("deleteFsByPath", { path: { path: "reports/day.csv" } });
   */
  deleteFsByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Copy a file, or a folder with all below it, into a folder.
   *
   * `POST /fs/copy`, permission: files:write.
   *
   * @example
   * await client.call("postFsCopy", { body: { srcpath: "/reports/day.csv", dstpath: "/archive" } });
   */
  postFsCopy: {
    request: {
      body: {
        /** Path of the file or folder. */
        srcpath: string;
        /** Of rename the whole new path, of copy and move the folder. */
        dstpath: string;
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
  };
  /**
   * Pack files, and folders with all below them, into a zip archive. With an archive, as /fs/import.
   *
   * `POST /fs/export`, permission: files:read.
   *
   * @example
   * await client.call("postFsExport", { body: { srcpath: ["/reports"] } });
   */
  postFsExport: {
    request: {
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Levels of the paths in the answer. Whole paths when absent. At least 1. */
        depth?: number;
        /** Encoding of names for which the archive states none, as gbk. utf-8 when absent. */
        encoding?: string;
        /** Files and folders to pack, each under its whole path. */
        srcpath?: readonly string[];
        /** How a client keeps the bytes. The answer is the same: the archive. */
        responseType?: string;
        uploadfile?: readonly Upload[];
      };
    };
    message: string[];
    content: true;
  };
  /**
   * Unpack a zip archive at the paths that it states.
   *
   * `POST /fs/import`, permission: files:write.
   *
   * @example
   * await client.call("postFsImport", {
   *   body: {
   *     depth: 1,
   *     uploadfile: { name: "example.txt", content: "(the bytes of a zip archive)" },
   *   },
   * });
   */
  postFsImport: {
    request: {
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Levels of the paths in the answer. Whole paths when absent. At least 1. */
        depth?: number;
        /** Encoding of names for which the archive states none, as gbk. utf-8 when absent. */
        encoding?: string;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: string[];
  };
  /**
   * Include all files in the search, and index their contents.
   *
   * `POST /fs/index`, permission: files:write.
   *
   * @example
   * await client.call("postFsIndex");
   */
  postFsIndex: {
    request: {
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: {
      /** Files whose whole content is found. */
      indexed: number;
      /** Files whose content, or a part of it, is not found. */
      unindexed: number;
    };
  };
  /**
   * Include a file, or all files below a folder, in the search, and index their contents.
   *
   * `POST /fs/index/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFsIndexByPath", { path: { path: "script" } });
   */
  postFsIndexByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: {
      /** Files whose whole content is found. */
      indexed: number;
      /** Files whose content, or a part of it, is not found. */
      unindexed: number;
    };
  };
  /**
   * Move a file, or a folder with all below it, into a folder.
   *
   * `POST /fs/move`, permission: files:write.
   *
   * @example
   * await client.call("postFsMove", { body: { srcpath: "/archive/monday.csv", dstpath: "/script" } });
   */
  postFsMove: {
    request: {
      body: {
        /** Path of the file or folder. */
        srcpath: string;
        /** Of rename the whole new path, of copy and move the folder. */
        dstpath: string;
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Make a file or folder equal to a version of it.
   *
   * `POST /fs/pull/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFsPullByPath", { path: { path: "reports" }, body: { version: "monday" } });
   */
  postFsPullByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Name of the version: no slash, at most 128 bytes. */
        version: string;
      };
    };
    message: number;
  };
  /**
   * Keep a file, or a folder with all below it, as a version.
   *
   * `POST /fs/push/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFsPushByPath", { path: { path: "reports" }, body: { version: "monday" } });
   */
  postFsPushByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Name of the version: no slash, at most 128 bytes. */
        version: string;
      };
    };
    message: number;
  };
  /**
   * Give a file or folder a whole new path.
   *
   * `POST /fs/rename`, permission: files:write.
   *
   * @example
   * await client.call("postFsRename", { body: { srcpath: "/archive/day.csv", dstpath: "/archive/monday.csv" } });
   */
  postFsRename: {
    request: {
      body: {
        /** Path of the file or folder. */
        srcpath: string;
        /** Of rename the whole new path, of copy and move the folder. */
        dstpath: string;
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Search words in the contents of all files. Without query: as GET of /fs/* of the folder /search.
   *
   * `GET /fs/search`, permission: files:read.
   *
   * @example
   * await client.call("getFsSearch", { query: { query: "greeting" } });
   */
  getFsSearch: {
    request: {
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Only with type=dir: a page of at most so many entries, in the order of names. All entries, in no order, when absent. 1 to 10000. */
        limit?: number;
        /** Only with limit: the member next of the answer's meta, for the page behind it. Absent: the first page. */
        after?: string;
        /** Without query, as of /fs/*. */
        type?: string;
        /** Words, and phrases in quotes, that one passage of a content has to contain. `web*` is a beginning. */
        query?: string;
      };
    };
    message: string | boolean | string[] | {
      /** Id of the file as an object. */
      id: string;
      /** Class of the file as an object. */
      class: string;
      /** Last part of the path. */
      name: string;
      /** Path of the folder that it is in. */
      parent: string;
      /** Whole path. */
      fullname: string;
      /** dir for a folder. */
      ftype: string;
      /** True for a folder. */
      isdir: boolean;
      /** JSON text, or empty. */
      attr: string;
      /** Bytes of the content; 0 for a folder. */
      size: number;
      /** Milliseconds. */
      ctime: number;
      /** Last change of the content, milliseconds. */
      mtime: number;
      /** Last change of the content, its attributes or tags, milliseconds. */
      vtime: number;
      /** User who wrote the content, or made the folder; empty if rules hide it. */
      owner: string;
      /** The same as owner. */
      username: string;
      /** Search in the content: empty for a file that is not included, indexed, indexing, or why it, or a part of it, is not found. */
      status: string;
      /** Tags of the file or folder. */
      tags: string[];
      /** Always false. */
      ispublic: boolean;
      /** For If-Match of a change. */
      revision: string;
      /** SHA-256 of the content in hexadecimal digits. Absent for a folder, and if rules hide it. */
      digest?: string;
    }[] | {
      /** Path of the file. */
      path: string;
      /** Last part of the path. */
      name: string;
      /** Number of the line, from 1; of a docx of the paragraph, of an xlsx of the row, of a pdf of the page. */
      position: number;
      /** The line, or a part of it; plain text without marks. */
      excerpt: string;
      /** From 0 to 1; the rows are ordered by it, the best first. */
      score: number;
    }[];
    content: true;
    cursor: true;
  };
  /**
   * Search words in the contents of files below a path. Without query: as GET of /fs/*, below the folder /search.
   *
   * `GET /fs/search/{path}`, permission: files:read.
   *
   * @example
   * await client.call("getFsSearchByPath", { path: { path: "script" }, query: { query: "greeting" } });
   */
  getFsSearchByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
        /** Only with type=dir: a page of at most so many entries, in the order of names. All entries, in no order, when absent. 1 to 10000. */
        limit?: number;
        /** Only with limit: the member next of the answer's meta, for the page behind it. Absent: the first page. */
        after?: string;
        /** Without query, as of /fs/*. */
        type?: string;
        /** Words, and phrases in quotes, that one passage of a content has to contain. `web*` is a beginning. */
        query?: string;
      };
    };
    message: string | boolean | string[] | {
      /** Id of the file as an object. */
      id: string;
      /** Class of the file as an object. */
      class: string;
      /** Last part of the path. */
      name: string;
      /** Path of the folder that it is in. */
      parent: string;
      /** Whole path. */
      fullname: string;
      /** dir for a folder. */
      ftype: string;
      /** True for a folder. */
      isdir: boolean;
      /** JSON text, or empty. */
      attr: string;
      /** Bytes of the content; 0 for a folder. */
      size: number;
      /** Milliseconds. */
      ctime: number;
      /** Last change of the content, milliseconds. */
      mtime: number;
      /** Last change of the content, its attributes or tags, milliseconds. */
      vtime: number;
      /** User who wrote the content, or made the folder; empty if rules hide it. */
      owner: string;
      /** The same as owner. */
      username: string;
      /** Search in the content: empty for a file that is not included, indexed, indexing, or why it, or a part of it, is not found. */
      status: string;
      /** Tags of the file or folder. */
      tags: string[];
      /** Always false. */
      ispublic: boolean;
      /** For If-Match of a change. */
      revision: string;
      /** SHA-256 of the content in hexadecimal digits. Absent for a folder, and if rules hide it. */
      digest?: string;
    }[] | {
      /** Path of the file. */
      path: string;
      /** Last part of the path. */
      name: string;
      /** Number of the line, from 1; of a docx of the paragraph, of an xlsx of the row, of a pdf of the page. */
      position: number;
      /** The line, or a part of it; plain text without marks. */
      excerpt: string;
      /** From 0 to 1; the rows are ordered by it, the best first. */
      score: number;
    }[];
    content: true;
    cursor: true;
  };
  /**
   * Keep a snapshot of a file or folder, which /local serves until the next one.
   *
   * `POST /fs/tolocal/{path}`, permission: files:write.
   *
   * @example
   * await client.call("postFsTolocalByPath", { path: { path: "reports" } });
   */
  postFsTolocalByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      body?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
  };
  /**
   * Groups of hosts that jobs name.
   *
   * `GET /group`, permission: jobs:read.
   *
   * @example
   * await client.call("getGroup");
   */
  getGroup: {
    request: Record<string, never>;
    message: {
      /** Name of the group. */
      name: string;
      /** proxy: its hosts are behind another one. */
      gtype: "group" | "proxy";
      /** Hosts of the group. */
      hosts: {
        /** Name of the host. */
        host: string;
        /** The host that leads there; empty: none. */
        proxy: string;
        /** Port of SSH behind proxy; empty: 22. */
        port: string;
        /** User of SSH behind proxy; empty: none, and jobs do not reach the host there. */
        username: string;
        /** Mask of the password or private key; empty: none. */
        password: string;
        /** SHA-256 fingerprint of the key that the host is to show; empty: not known. */
        sshkey: string;
      }[];
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Replace the group of that type and name.
   *
   * `PUT /group`, permission: jobs:write.
   *
   * @example
   * await client.call("putGroup", { body: { name: "webs", gtype: "group", hosts: [{ host: "web-1" }] } });
   */
  putGroup: {
    request: {
      body: {
        /** Name of the group. */
        name: string;
        /** proxy: its hosts are behind another one. */
        gtype: "group" | "proxy";
        /** Hosts of the group, in place of the present ones. */
        hosts: readonly {
          /** Name of the host. */
          host: string;
          /** the host that leads there, in a group of type proxy; without it, the record of the host says how to reach it. */
          proxy?: string;
          /** Port of SSH behind proxy; empty: 22. Without effect without proxy. */
          port?: string | number;
          /** User of SSH behind proxy, where jobs need one. Without effect without proxy. */
          username?: string;
          /** or a private key in PEM; never answered; missing or masked: the stored one stays, empty: it goes. Needed behind proxy; without effect without it. */
          password?: string;
          /** SHA256:… of the key that the host is to show; missing: the one on record stays, empty: it is forgotten. */
          sshkey?: string;
        }[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Make a group, or replace the one of that type and name.
   *
   * `POST /group`, permission: jobs:write.
   *
   * @example
   * await client.call("postGroup", { body: { name: "webs", gtype: "group", hosts: [{ host: "web-1" }] } });
   */
  postGroup: {
    request: {
      body: {
        /** Name of the group. */
        name: string;
        /** proxy: its hosts are behind another one. */
        gtype: "group" | "proxy";
        /** Hosts of the group, in place of the present ones. */
        hosts: readonly {
          /** Name of the host. */
          host: string;
          /** the host that leads there, in a group of type proxy; without it, the record of the host says how to reach it. */
          proxy?: string;
          /** Port of SSH behind proxy; empty: 22. Without effect without proxy. */
          port?: string | number;
          /** User of SSH behind proxy, where jobs need one. Without effect without proxy. */
          username?: string;
          /** or a private key in PEM; never answered; missing or masked: the stored one stays, empty: it goes. Needed behind proxy; without effect without it. */
          password?: string;
          /** SHA256:… of the key that the host is to show; missing: the one on record stays, empty: it is forgotten. */
          sshkey?: string;
        }[];
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Remove a group.
   *
   * `DELETE /group/{gtype}/{name}`, permission: jobs:write.
   *
   * @example
   * await client.call("deleteGroupByGtypeByName", { path: { gtype: "group", name: "webs" } });
   */
  deleteGroupByGtypeByName: {
    request: {
      path: {
        /** proxy: its hosts are behind another one. */
        gtype: "group" | "proxy";
        /** Name of the group. */
        name: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Hosts, all or those with a tag, online or not.
   *
   * `GET /host`, permission: hosts:read.
   *
   * @example
   * await client.call("getHost");
   */
  getHost: {
    request: {
      query?: {
        /** Only hosts with this tag or one below it. At most 500 characters. */
        tag?: string;
        /** true: only hosts that are online; false: only the others. */
        status?: boolean;
      };
    };
    message: {
      /** Id of the host as an object. */
      id: string;
      /** Class of the host as an object. */
      class: string;
      /** Name of the host. */
      host: string;
      /** Addresses of the host. */
      iplist: string[];
      /** Domain of the host; empty: none. */
      domain: string;
      /** Groups of the host. */
      hostgroups: string[];
      /** 1 for a host whose agent enrolled, or as users set it; 0 otherwise. */
      isagent: number;
      /** 1 if the host is for an external agent, as users set it; 0 otherwise. */
      isextagent: number;
      /** 1 means the same as 1 of isextagent, as users set it; 0 otherwise. */
      iszabbix: number;
      /** Text that is kept for clients. */
      sert: string;
      /** SHA-256 fingerprint of the key that the host shows over SSH; empty: not known. */
      sshkey: string;
      /** Configuration of the host; secrets are masked. */
      config: Record<string, string>;
      /** Depots on the host by name, each the JSON text of `[{version}]`. */
      depot: Record<string, string>;
      /** Time since which each depot has its version on the host, in milliseconds since 1970. */
      depottimes: Record<string, string>;
      /** State of each policy that is wanted on the host: `running`, `wanted`, or `failed: ` and the reason. */
      policies: Record<string, string>;
      /** Time since which each policy has its state, in milliseconds since 1970. */
      policytimes: Record<string, string>;
      /** Usage of the processes of daemons, by policy/<name>, and of external agents, by extagent, as JSON: cpu in percent of one processor, memory in bytes, processes. */
      usage: Record<string, string>;
      /** SHA-256 of the conf that the agent has in place, by policy. */
      confs: Record<string, string>;
      /** online while the agent has a session. */
      status: "online" | "offline";
      /** Time since which the host has its status, in milliseconds since 1970; absent: no agent ever connected. */
      statustime?: number;
      /** Tags of the host. */
      tags: string[];
      /** Revision of the definition; facts and states that odp notes leave it as it is. */
      revision: string;
    }[];
  };
  /**
   * Makes a host or changes the members that are sent.
   *
   * `POST /host`, permission: hosts:write.
   *
   * @example
   * await client.call("postHost", { body: { host: "web-1", iplist: ["192.0.2.10"], isagent: 1 } });
   */
  postHost: {
    request: {
      body: {
        /** Name of the host; it need not exist yet. 1 to 255 characters. */
        host: string;
        /** Addresses of the host. SSH uses the first one. At most 64 items. */
        iplist?: readonly string[];
        /** Domain of the host, for people. At most 255 characters. */
        domain?: string;
        /** Groups of the host, for `group:` in lists of hosts. At most 500 items. */
        hostgroups?: readonly string[];
        /** 1: the host has an agent. Enrolment sets it by itself. 0 to 1. */
        isagent?: number;
        /** 1: the host is for an external agent. 0 to 1. */
        isextagent?: number;
        /** 1: the same as 1 of isextagent. 0 to 1. */
        iszabbix?: number;
        /** Text that is kept for clients; without effect. At most 65536 characters. */
        sert?: string;
        /** Secret that is kept for clients and never answered. Its mask `******` leaves it, null removes it. */
        secret?: string | null;
        /** SHA-256 fingerprint of the host's SSH key. Absent: the first connection records it. Empty: removes it. */
        sshkey?: string;
        /** Tags of the host, in place of the present ones. At most 500 items. */
        tags?: readonly string[];
        /** Members are merged, null removes one. SSH needs `username`, `password` or `privatekey` (with `passphrase`), and `port`; also `address`, if neither iplist nor the name reaches the host. `time_zone`: zone for times without a zone in its records, unless the rule or the policy names one. */
        config?: Record<string, unknown>;
      };
    };
    message: {
      /** Id of the host as an object. */
      id: string;
      /** Class of the host as an object. */
      class: string;
      /** Name of the host. */
      host: string;
      /** Addresses of the host. */
      iplist: string[];
      /** Domain of the host; empty: none. */
      domain: string;
      /** Groups of the host. */
      hostgroups: string[];
      /** 1 for a host whose agent enrolled, or as users set it; 0 otherwise. */
      isagent: number;
      /** 1 if the host is for an external agent, as users set it; 0 otherwise. */
      isextagent: number;
      /** 1 means the same as 1 of isextagent, as users set it; 0 otherwise. */
      iszabbix: number;
      /** Text that is kept for clients. */
      sert: string;
      /** SHA-256 fingerprint of the key that the host shows over SSH; empty: not known. */
      sshkey: string;
      /** Configuration of the host; secrets are masked. */
      config: Record<string, string>;
      /** Depots on the host by name, each the JSON text of `[{version}]`. */
      depot: Record<string, string>;
      /** Time since which each depot has its version on the host, in milliseconds since 1970. */
      depottimes: Record<string, string>;
      /** State of each policy that is wanted on the host: `running`, `wanted`, or `failed: ` and the reason. */
      policies: Record<string, string>;
      /** Time since which each policy has its state, in milliseconds since 1970. */
      policytimes: Record<string, string>;
      /** Usage of the processes of daemons, by policy/<name>, and of external agents, by extagent, as JSON: cpu in percent of one processor, memory in bytes, processes. */
      usage: Record<string, string>;
      /** SHA-256 of the conf that the agent has in place, by policy. */
      confs: Record<string, string>;
      /** online while the agent has a session. */
      status: "online" | "offline";
      /** Time since which the host has its status, in milliseconds since 1970; absent: no agent ever connected. */
      statustime?: number;
      /** Tags of the host. */
      tags: string[];
      /** Revision of the definition; facts and states that odp notes leave it as it is. */
      revision: string;
    };
    revised: true;
  };
  /**
   * One host.
   *
   * `GET /host/{name}`, permission: hosts:read.
   *
   * @example
   * await client.call("getHostByName", { path: { name: "web-1" } });
   */
  getHostByName: {
    request: {
      path: {
        /** Name of the host. 1 to 255 characters. */
        name: string;
      };
    };
    message: {
      /** Id of the host as an object. */
      id: string;
      /** Class of the host as an object. */
      class: string;
      /** Name of the host. */
      host: string;
      /** Addresses of the host. */
      iplist: string[];
      /** Domain of the host; empty: none. */
      domain: string;
      /** Groups of the host. */
      hostgroups: string[];
      /** 1 for a host whose agent enrolled, or as users set it; 0 otherwise. */
      isagent: number;
      /** 1 if the host is for an external agent, as users set it; 0 otherwise. */
      isextagent: number;
      /** 1 means the same as 1 of isextagent, as users set it; 0 otherwise. */
      iszabbix: number;
      /** Text that is kept for clients. */
      sert: string;
      /** SHA-256 fingerprint of the key that the host shows over SSH; empty: not known. */
      sshkey: string;
      /** Configuration of the host; secrets are masked. */
      config: Record<string, string>;
      /** Depots on the host by name, each the JSON text of `[{version}]`. */
      depot: Record<string, string>;
      /** Time since which each depot has its version on the host, in milliseconds since 1970. */
      depottimes: Record<string, string>;
      /** State of each policy that is wanted on the host: `running`, `wanted`, or `failed: ` and the reason. */
      policies: Record<string, string>;
      /** Time since which each policy has its state, in milliseconds since 1970. */
      policytimes: Record<string, string>;
      /** Usage of the processes of daemons, by policy/<name>, and of external agents, by extagent, as JSON: cpu in percent of one processor, memory in bytes, processes. */
      usage: Record<string, string>;
      /** SHA-256 of the conf that the agent has in place, by policy. */
      confs: Record<string, string>;
      /** online while the agent has a session. */
      status: "online" | "offline";
      /** Time since which the host has its status, in milliseconds since 1970; absent: no agent ever connected. */
      statustime?: number;
      /** Tags of the host. */
      tags: string[];
      /** Revision of the definition; facts and states that odp notes leave it as it is. */
      revision: string;
    };
  };
  /**
   * Removes a host; its agent's certificate is no longer good.
   *
   * `DELETE /host/{name}`, permission: hosts:write.
   *
   * @example
   * await client.call("deleteHostByName", { path: { name: "web-1" } });
   */
  deleteHostByName: {
    request: {
      path: {
        /** Name of the host. 1 to 255 characters. */
        name: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Lists the jobs.
   *
   * `GET /job`, permission: jobs:read.
   *
   * @example
   * await client.call("getJob");
   */
  getJob: {
    request: Record<string, never>;
    message: {
      /** Id of the job as an object. */
      id: string;
      /** Class of the job as an object. */
      class: string;
      /** <name>@<dir>. */
      fullname: string;
      /** Name of the job, without its folder. */
      name: string;
      /** Folder of the job; empty: none. */
      dir: string;
      /** Description for people. */
      description: string;
      /** Groups of hosts, separated by commas; empty: none. */
      group: string;
      /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host. */
      groupmode: string;
      /** Hosts, as names and expressions. */
      host: string[];
      /** Script that runs on the controller before the first host; empty: none. */
      begin: string;
      /** Script that runs on the controller after the last host; empty: none. */
      end: string;
      /** Command lines. */
      exec: string[];
      /** Words that are appended to every command line. */
      arg: string[];
      /** Encoding of commands and their output on the hosts; empty: UTF-8. */
      argenc: string;
      /** User of the hosts who runs the commands; empty: that of the agent or the login. */
      user: string;
      /** When the job runs by itself; empty: never. */
      schedule: string;
      /** seconds. */
      timeout: number;
      /** How groupmode one chooses the host. */
      algorithm: string;
      /** Most executions at once, on all controllers together; 0 or less: no limit. */
      limit: number;
      /** 1: the schedule is on; 0: it is off. */
      enable: number;
      /** Queue whose jobs run one after another; empty: none. */
      queue: string;
      /** How often a host that failed is tried again. */
      retry: number;
      /** seconds. */
      retrydelay: number;
      /** Most runs that are kept, the newest; 0: all of the days that they are kept. */
      keep: number;
      /** days. */
      keepdays: number;
      /** when its schedule comes next, in milliseconds. */
      next?: number[];
      /** Tags of the job. */
      tag: string[];
      /** belongs to the platform. */
      system: boolean;
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the job. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Changes the members that are sent.
   *
   * `PUT /job`, permission: jobs:write.
   *
   * @example
   * await client.call("putJob", {
   *   body: { name: "backup", dir: "nightly", schedule: "cron 0 2 * * *; tz=Europe/Berlin" },
   * });
   */
  putJob: {
    request: {
      body: {
        /** Name of the job, without its folder. 1 to 200 characters. */
        name: string;
        /** Folder of the job; empty: none. At most 300 characters. */
        dir?: string;
        /** Description for people. At most 4000 characters. */
        description?: string;
        /** groups of hosts, separated by commas. At most 4000 characters. */
        group?: string;
        /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host, chosen by algorithm. */
        groupmode?: "one" | "parallel" | "sequence" | "";
        /** At most 1500 items. */
        host?: readonly string[];
        /** Script that runs on the controller before the first host; empty: none. At most 64000 characters. */
        begin?: string;
        /** Script that runs on the controller after the last host; empty: none. At most 64000 characters. */
        end?: string;
        /** appended to every exec, each as one word. At most 50 items. */
        arg?: readonly string[];
        /** Encoding of commands and their output on the hosts; empty: UTF-8. At most 100 characters. */
        argenc?: string;
        /** User of the hosts who runs the commands; empty: the user of the agent, or that of the SSH login. An agent runs them as another user only if it is root, SSH never. */
        user?: string;
        /** [cron] with five or six fields, @hourly|@daily|@weekly|@monthly|@yearly, every 30s|5m|2h|1d, or at <time>; then, each with a ; before it, tz=<zone>; missed=skip|last|all; overlap=skip|queue|allow; jitter=<duration>. At most 500 characters. */
        schedule?: string;
        /** of groupmode one: roundrobin, leastload, random or sticky. At most 100 characters. */
        algorithm?: string;
        /** Most executions at once, on all controllers together; 0 or less: no limit. */
        limit?: number;
        /** Queue whose jobs run one after another; empty: none. At most 200 characters. */
        queue?: string;
        /** how often a host that failed is tried again; timeout is of each try. 0 to 20. */
        retry?: number;
        /** seconds before each of these tries. 0 to 3600. */
        retrydelay?: number;
        /** most runs that are kept of it, the newest, with their output; 0: all of the days that they are kept. 0 to 10000. */
        keep?: number;
        /** for how many days its runs are kept, with their output; 0: 30. 0 to 30. */
        keepdays?: number;
        /** Tags of the job. At most 1000 items. */
        tag?: readonly string[];
        /** command lines for the host's shell. 1 to 50 items. */
        exec?: readonly string[];
        /** seconds. */
        timeout?: number;
        /** 1: the schedule is on; 0: it is off. 0 to 1. */
        enable?: number;
      };
    };
    message: {
      /** Id of the job as an object. */
      id: string;
      /** Class of the job as an object. */
      class: string;
      /** <name>@<dir>. */
      fullname: string;
      /** Name of the job, without its folder. */
      name: string;
      /** Folder of the job; empty: none. */
      dir: string;
      /** Description for people. */
      description: string;
      /** Groups of hosts, separated by commas; empty: none. */
      group: string;
      /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host. */
      groupmode: string;
      /** Hosts, as names and expressions. */
      host: string[];
      /** Script that runs on the controller before the first host; empty: none. */
      begin: string;
      /** Script that runs on the controller after the last host; empty: none. */
      end: string;
      /** Command lines. */
      exec: string[];
      /** Words that are appended to every command line. */
      arg: string[];
      /** Encoding of commands and their output on the hosts; empty: UTF-8. */
      argenc: string;
      /** User of the hosts who runs the commands; empty: that of the agent or the login. */
      user: string;
      /** When the job runs by itself; empty: never. */
      schedule: string;
      /** seconds. */
      timeout: number;
      /** How groupmode one chooses the host. */
      algorithm: string;
      /** Most executions at once, on all controllers together; 0 or less: no limit. */
      limit: number;
      /** 1: the schedule is on; 0: it is off. */
      enable: number;
      /** Queue whose jobs run one after another; empty: none. */
      queue: string;
      /** How often a host that failed is tried again. */
      retry: number;
      /** seconds. */
      retrydelay: number;
      /** Most runs that are kept, the newest; 0: all of the days that they are kept. */
      keep: number;
      /** days. */
      keepdays: number;
      /** when its schedule comes next, in milliseconds. */
      next?: number[];
      /** Tags of the job. */
      tag: string[];
      /** belongs to the platform. */
      system: boolean;
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the job. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Adds a job, or replaces the one of that name.
   *
   * `POST /job`, permission: jobs:write.
   *
   * @example
   * await client.call("postJob", {
   *   body: {
   *     name: "backup",
   *     dir: "nightly",
   *     host: ["web-1"],
   *     exec: ["tar -cf /tmp/etc.tar /etc"],
   *   },
   * });
   */
  postJob: {
    request: {
      body: {
        /** Name of the job, without its folder. 1 to 200 characters. */
        name: string;
        /** Folder of the job; empty: none. At most 300 characters. */
        dir?: string;
        /** Description for people. At most 4000 characters. */
        description?: string;
        /** groups of hosts, separated by commas. At most 4000 characters. */
        group?: string;
        /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host, chosen by algorithm. */
        groupmode?: "one" | "parallel" | "sequence" | "";
        /** At most 1500 items. */
        host?: readonly string[];
        /** Script that runs on the controller before the first host; empty: none. At most 64000 characters. */
        begin?: string;
        /** Script that runs on the controller after the last host; empty: none. At most 64000 characters. */
        end?: string;
        /** appended to every exec, each as one word. At most 50 items. */
        arg?: readonly string[];
        /** Encoding of commands and their output on the hosts; empty: UTF-8. At most 100 characters. */
        argenc?: string;
        /** User of the hosts who runs the commands; empty: the user of the agent, or that of the SSH login. An agent runs them as another user only if it is root, SSH never. */
        user?: string;
        /** [cron] with five or six fields, @hourly|@daily|@weekly|@monthly|@yearly, every 30s|5m|2h|1d, or at <time>; then, each with a ; before it, tz=<zone>; missed=skip|last|all; overlap=skip|queue|allow; jitter=<duration>. At most 500 characters. */
        schedule?: string;
        /** of groupmode one: roundrobin, leastload, random or sticky. At most 100 characters. */
        algorithm?: string;
        /** Most executions at once, on all controllers together; 0 or less: no limit. */
        limit?: number;
        /** Queue whose jobs run one after another; empty: none. At most 200 characters. */
        queue?: string;
        /** how often a host that failed is tried again; timeout is of each try. 0 to 20. */
        retry?: number;
        /** seconds before each of these tries. 0 to 3600. */
        retrydelay?: number;
        /** most runs that are kept of it, the newest, with their output; 0: all of the days that they are kept. 0 to 10000. */
        keep?: number;
        /** for how many days its runs are kept, with their output; 0: 30. 0 to 30. */
        keepdays?: number;
        /** Tags of the job. At most 1000 items. */
        tag?: readonly string[];
        /** command lines for the host's shell. 1 to 50 items. */
        exec: readonly string[];
        /**
         * seconds.
         * @default 60
         */
        timeout?: number;
        /**
         * 1: the schedule is on; 0: it is off. 0 to 1.
         * @default 1
         */
        enable?: number;
      };
    };
    message: {
      /** Id of the job as an object. */
      id: string;
      /** Class of the job as an object. */
      class: string;
      /** <name>@<dir>. */
      fullname: string;
      /** Name of the job, without its folder. */
      name: string;
      /** Folder of the job; empty: none. */
      dir: string;
      /** Description for people. */
      description: string;
      /** Groups of hosts, separated by commas; empty: none. */
      group: string;
      /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host. */
      groupmode: string;
      /** Hosts, as names and expressions. */
      host: string[];
      /** Script that runs on the controller before the first host; empty: none. */
      begin: string;
      /** Script that runs on the controller after the last host; empty: none. */
      end: string;
      /** Command lines. */
      exec: string[];
      /** Words that are appended to every command line. */
      arg: string[];
      /** Encoding of commands and their output on the hosts; empty: UTF-8. */
      argenc: string;
      /** User of the hosts who runs the commands; empty: that of the agent or the login. */
      user: string;
      /** When the job runs by itself; empty: never. */
      schedule: string;
      /** seconds. */
      timeout: number;
      /** How groupmode one chooses the host. */
      algorithm: string;
      /** Most executions at once, on all controllers together; 0 or less: no limit. */
      limit: number;
      /** 1: the schedule is on; 0: it is off. */
      enable: number;
      /** Queue whose jobs run one after another; empty: none. */
      queue: string;
      /** How often a host that failed is tried again. */
      retry: number;
      /** seconds. */
      retrydelay: number;
      /** Most runs that are kept, the newest; 0: all of the days that they are kept. */
      keep: number;
      /** days. */
      keepdays: number;
      /** when its schedule comes next, in milliseconds. */
      next?: number[];
      /** Tags of the job. */
      tag: string[];
      /** belongs to the platform. */
      system: boolean;
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the job. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * The job <name>@<dir>; with param, its execution.
   *
   * `GET /job/{path}`, permission: jobs:read.
   *
   * @example
   * await client.call("getJobByPath", { path: { path: "backup@nightly" } });
   */
  getJobByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
      query?: {
        /** JSON object; `HOST!` overrides the hosts, `GROUP!` the groups, `timeout` the time; `STDIN!` is the standard input of each command, a text or {"base64": "…"}; the rest is the environment. */
        param?: string;
        /** waits for the end and answers the output. */
        receive_output?: boolean;
        /** answers lines of JSON as the output comes: {host, stream, data} with data in base64, {runid} once it is known, at last {runid, runs}; who goes away cancels the commands. */
        stream?: boolean;
        /** seconds. */
        timeout?: number;
      };
    };
    message: unknown;
    line: {
      /** Host with the output. */
      host: string;
      /** Standard output or standard error. */
      stream: "stdout" | "stderr";
      /** base64. */
      data: string;
    } | {
      /** Id of the run. */
      runid: string;
      /** End of each run. */
      runs: {
        /** Host of the run. */
        host: string;
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** exit code of the command. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      }[];
      /** bytes that are left out here, because they were read too slowly. */
      skipped: number;
      /** why the run failed as a whole. */
      message?: string;
    } | {
      /** Id of the run, as soon as it is known. */
      runid: string;
    };
  };
  /**
   * Changes the members that are sent of the job <name>@<dir>.
   *
   * `PATCH /job/{path}`, permission: jobs:write.
   *
   * @example
   * await client.call("patchJobByPath", {
   *   path: { path: "backup@nightly" },
   *   body: { description: "Dumps of all databases" },
   * });
   */
  patchJobByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
      body?: {
        /** Description for people. At most 4000 characters. */
        description?: string;
        /** groups of hosts, separated by commas. At most 4000 characters. */
        group?: string;
        /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host, chosen by algorithm. */
        groupmode?: "one" | "parallel" | "sequence" | "";
        /** At most 1500 items. */
        host?: readonly string[];
        /** Script that runs on the controller before the first host; empty: none. At most 64000 characters. */
        begin?: string;
        /** Script that runs on the controller after the last host; empty: none. At most 64000 characters. */
        end?: string;
        /** appended to every exec, each as one word. At most 50 items. */
        arg?: readonly string[];
        /** Encoding of commands and their output on the hosts; empty: UTF-8. At most 100 characters. */
        argenc?: string;
        /** User of the hosts who runs the commands; empty: the user of the agent, or that of the SSH login. An agent runs them as another user only if it is root, SSH never. */
        user?: string;
        /** [cron] with five or six fields, @hourly|@daily|@weekly|@monthly|@yearly, every 30s|5m|2h|1d, or at <time>; then, each with a ; before it, tz=<zone>; missed=skip|last|all; overlap=skip|queue|allow; jitter=<duration>. At most 500 characters. */
        schedule?: string;
        /** of groupmode one: roundrobin, leastload, random or sticky. At most 100 characters. */
        algorithm?: string;
        /** Most executions at once, on all controllers together; 0 or less: no limit. */
        limit?: number;
        /** Queue whose jobs run one after another; empty: none. At most 200 characters. */
        queue?: string;
        /** how often a host that failed is tried again; timeout is of each try. 0 to 20. */
        retry?: number;
        /** seconds before each of these tries. 0 to 3600. */
        retrydelay?: number;
        /** most runs that are kept of it, the newest, with their output; 0: all of the days that they are kept. 0 to 10000. */
        keep?: number;
        /** for how many days its runs are kept, with their output; 0: 30. 0 to 30. */
        keepdays?: number;
        /** Tags of the job. At most 1000 items. */
        tag?: readonly string[];
        /** command lines for the host's shell. 1 to 50 items. */
        exec?: readonly string[];
        /** seconds. */
        timeout?: number;
        /** 1: the schedule is on; 0: it is off. 0 to 1. */
        enable?: number;
      };
    };
    message: {
      /** Id of the job as an object. */
      id: string;
      /** Class of the job as an object. */
      class: string;
      /** <name>@<dir>. */
      fullname: string;
      /** Name of the job, without its folder. */
      name: string;
      /** Folder of the job; empty: none. */
      dir: string;
      /** Description for people. */
      description: string;
      /** Groups of hosts, separated by commas; empty: none. */
      group: string;
      /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host. */
      groupmode: string;
      /** Hosts, as names and expressions. */
      host: string[];
      /** Script that runs on the controller before the first host; empty: none. */
      begin: string;
      /** Script that runs on the controller after the last host; empty: none. */
      end: string;
      /** Command lines. */
      exec: string[];
      /** Words that are appended to every command line. */
      arg: string[];
      /** Encoding of commands and their output on the hosts; empty: UTF-8. */
      argenc: string;
      /** User of the hosts who runs the commands; empty: that of the agent or the login. */
      user: string;
      /** When the job runs by itself; empty: never. */
      schedule: string;
      /** seconds. */
      timeout: number;
      /** How groupmode one chooses the host. */
      algorithm: string;
      /** Most executions at once, on all controllers together; 0 or less: no limit. */
      limit: number;
      /** 1: the schedule is on; 0: it is off. */
      enable: number;
      /** Queue whose jobs run one after another; empty: none. */
      queue: string;
      /** How often a host that failed is tried again. */
      retry: number;
      /** seconds. */
      retrydelay: number;
      /** Most runs that are kept, the newest; 0: all of the days that they are kept. */
      keep: number;
      /** days. */
      keepdays: number;
      /** when its schedule comes next, in milliseconds. */
      next?: number[];
      /** Tags of the job. */
      tag: string[];
      /** belongs to the platform. */
      system: boolean;
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the job. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Deletes the job <name>@<dir>.
   *
   * `DELETE /job/{path}`, permission: jobs:write.
   *
   * @example
   * await client.call("deleteJobByPath", { path: { path: "backup@nightly" } });
   */
  deleteJobByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Executes several jobs side by side; none of them when one is wrong.
   *
   * `POST /job/batch`, permission: jobs:run.
   *
   * @example
   * await client.call("postJobBatch", { body: { jobs: [{ name: "backup@nightly", timeout: 60 }] } });
   */
  postJobBatch: {
    request: {
      body: {
        /** Jobs to run, side by side. The answer has them in this order. At most 100 items. */
        jobs: readonly {
          /** <name>@<dir>. 1 to 600 characters. */
          name: string;
          /** JSON text of an object. */
          param?: string;
          /** seconds. */
          timeout?: number;
        }[];
        /** seconds; 0 or more waits for the output, more than 0 is the most that any of the jobs takes; else the ids of the runs are answered at once. */
        timeout?: number;
      };
    };
    message: {
      /** Name of the job. */
      name: string;
      /** absent when it could not be begun. */
      runid?: string;
      /** error: the job could not be begun, or did not end as ok. */
      status: "ok" | "error";
      /** of an error. */
      code?: string;
      /** the output, the text of an error, or the id of the run. */
      message: string;
      /** End of each run of the job. */
      runs?: {
        /** Host of the run. */
        host: string;
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** exit code of the command. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      }[];
    }[];
  };
  /**
   * Cancels a run, or its part on one host; answers whether it was not over yet.
   *
   * `POST /job/cancel/{runid}`, permission: jobs:run.
   *
   * @example
   * await client.call("postJobCancelByRunid", { path: { runid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  postJobCancelByRunid: {
    request: {
      path: {
        /** Id of the run. 1 to 100 characters. */
        runid: string;
      };
      body?: {
        /** only there; absent: everywhere. 1 to 255 characters. */
        host?: string;
      };
    };
    message: boolean;
  };
  /**
   * Values of a job context by name.
   *
   * `GET /job/context/{sid}`, permission: jobs:read.
   *
   * @example
   * await client.call("getJobContextBySid", { path: { sid: "backup-1" } });
   */
  getJobContextBySid: {
    request: {
      path: {
        /** Id of the context: values that the parts of a run share. */
        sid: string;
      };
      query?: {
        /** only names that begin so. */
        prefix?: string;
      };
    };
    message: Record<string, string>;
  };
  /**
   * Set one value of a job context.
   *
   * `PUT /job/context/{sid}`, permission: jobs:run.
   *
   * @example
   * await client.call("putJobContextBySid", { path: { sid: "backup-1" }, body: { name: "step", value: "2", ttl: 3600 } });
   */
  putJobContextBySid: {
    request: {
      path: {
        /** Id of the context: values that the parts of a run share. */
        sid: string;
      };
      body: {
        /** Name of the value. */
        name: string;
        /** The value. */
        value: string;
        /** seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
    };
    message: string;
  };
  /**
   * Set one value of a job context.
   *
   * `POST /job/context/{sid}`, permission: jobs:run.
   *
   * @example
   * await client.call("postJobContextBySid", { path: { sid: "backup-1" }, body: { name: "step", value: "2", ttl: 3600 } });
   */
  postJobContextBySid: {
    request: {
      path: {
        /** Id of the context: values that the parts of a run share. */
        sid: string;
      };
      body: {
        /** Name of the value. */
        name: string;
        /** The value. */
        value: string;
        /** seconds; 0 or absent: for ever. 0 to 315360000. */
        ttl?: number;
      };
    };
    message: string;
  };
  /**
   * Remove one value of a job context, or with clear all of them.
   *
   * `DELETE /job/context/{sid}`, permission: jobs:run.
   *
   * @example
   * await client.call("deleteJobContextBySid", { path: { sid: "backup-1" }, query: { name: "step" } });
   */
  deleteJobContextBySid: {
    request: {
      path: {
        /** Id of the context: values that the parts of a run share. */
        sid: string;
      };
      query?: {
        /** Name of the value that is removed. */
        name?: string;
        /** removes all values. */
        clear?: boolean;
      };
    };
    message: string;
  };
  /**
   * Schedules no longer start the job <name>@<dir>.
   *
   * `GET /job/disable/{path}`, permission: jobs:write.
   *
   * @example
   * await client.call("getJobDisableByPath", { path: { path: "backup@nightly" } });
   */
  getJobDisableByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
    };
    message: boolean;
  };
  /**
   * Schedules start the job <name>@<dir>.
   *
   * `GET /job/enable/{path}`, permission: jobs:write.
   *
   * @example
   * await client.call("getJobEnableByPath", { path: { path: "backup@nightly" } });
   */
  getJobEnableByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
    };
    message: boolean;
  };
  /**
   * Executes the job <name>@<dir>.
   *
   * `GET /job/exec/{path}`, permission: jobs:run.
   *
   * @example
   * await client.call("getJobExecByPath", { path: { path: "backup@nightly" } });
   */
  getJobExecByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
      query?: {
        /** JSON object; `HOST!` overrides the hosts, `GROUP!` the groups, `timeout` the time; `STDIN!` is the standard input of each command, a text or {"base64": "…"}; the rest is the environment. */
        param?: string;
        /** waits for the end and answers the output. */
        receive_output?: boolean;
        /** answers lines of JSON as the output comes: {host, stream, data} with data in base64, {runid} once it is known, at last {runid, runs}; who goes away cancels the commands. */
        stream?: boolean;
        /** seconds. */
        timeout?: number;
      };
    };
    message: unknown;
    line: {
      /** Host with the output. */
      host: string;
      /** Standard output or standard error. */
      stream: "stdout" | "stderr";
      /** base64. */
      data: string;
    } | {
      /** Id of the run. */
      runid: string;
      /** End of each run. */
      runs: {
        /** Host of the run. */
        host: string;
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** exit code of the command. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      }[];
      /** bytes that are left out here, because they were read too slowly. */
      skipped: number;
      /** why the run failed as a whole. */
      message?: string;
    } | {
      /** Id of the run, as soon as it is known. */
      runid: string;
    };
  };
  /**
   * Executes the job <name>@<dir>.
   *
   * `POST /job/exec/{path}`, permission: jobs:run.
   *
   * @example
   * await client.call("postJobExecByPath", { path: { path: "backup@nightly" } });
   */
  postJobExecByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
      body?: {
        /** JSON object; `HOST!` overrides the hosts, `GROUP!` the groups, `timeout` the time; `STDIN!` is the standard input of each command, a text or {"base64": "…"}; the rest is the environment. */
        param?: string;
        /** waits for the end and answers the output. */
        receive_output?: boolean;
        /** answers lines of JSON as the output comes: {host, stream, data} with data in base64, {runid} once it is known, at last {runid, runs}; who goes away cancels the commands. */
        stream?: boolean;
        /** seconds. */
        timeout?: number;
      };
    };
    message: unknown;
    line: {
      /** Host with the output. */
      host: string;
      /** Standard output or standard error. */
      stream: "stdout" | "stderr";
      /** base64. */
      data: string;
    } | {
      /** Id of the run. */
      runid: string;
      /** End of each run. */
      runs: {
        /** Host of the run. */
        host: string;
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** exit code of the command. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      }[];
      /** bytes that are left out here, because they were read too slowly. */
      skipped: number;
      /** why the run failed as a whole. */
      message?: string;
    } | {
      /** Id of the run, as soon as it is known. */
      runid: string;
    };
  };
  /**
   * Whether there is a job <name>@<dir>.
   *
   * `GET /job/exist/{path}`, permission: jobs:read.
   *
   * @example
   * await client.call("getJobExistByPath", { path: { path: "backup@nightly" } });
   */
  getJobExistByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. 1 to 600 characters. */
        path: string;
      };
    };
    message: boolean;
  };
  /**
   * Changes the members that are sent; adds a job that is not there.
   *
   * `POST /job/merge`, permission: jobs:write.
   *
   * @example
   * await client.call("postJobMerge", { body: { name: "backup", dir: "nightly", description: "Every night" } });
   */
  postJobMerge: {
    request: {
      body: {
        /** Name of the job, without its folder. 1 to 200 characters. */
        name: string;
        /** Folder of the job; empty: none. At most 300 characters. */
        dir?: string;
        /** Description for people. At most 4000 characters. */
        description?: string;
        /** groups of hosts, separated by commas. At most 4000 characters. */
        group?: string;
        /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host, chosen by algorithm. */
        groupmode?: "one" | "parallel" | "sequence" | "";
        /** At most 1500 items. */
        host?: readonly string[];
        /** Script that runs on the controller before the first host; empty: none. At most 64000 characters. */
        begin?: string;
        /** Script that runs on the controller after the last host; empty: none. At most 64000 characters. */
        end?: string;
        /** appended to every exec, each as one word. At most 50 items. */
        arg?: readonly string[];
        /** Encoding of commands and their output on the hosts; empty: UTF-8. At most 100 characters. */
        argenc?: string;
        /** User of the hosts who runs the commands; empty: the user of the agent, or that of the SSH login. An agent runs them as another user only if it is root, SSH never. */
        user?: string;
        /** [cron] with five or six fields, @hourly|@daily|@weekly|@monthly|@yearly, every 30s|5m|2h|1d, or at <time>; then, each with a ; before it, tz=<zone>; missed=skip|last|all; overlap=skip|queue|allow; jitter=<duration>. At most 500 characters. */
        schedule?: string;
        /** of groupmode one: roundrobin, leastload, random or sticky. At most 100 characters. */
        algorithm?: string;
        /** Most executions at once, on all controllers together; 0 or less: no limit. */
        limit?: number;
        /** Queue whose jobs run one after another; empty: none. At most 200 characters. */
        queue?: string;
        /** how often a host that failed is tried again; timeout is of each try. 0 to 20. */
        retry?: number;
        /** seconds before each of these tries. 0 to 3600. */
        retrydelay?: number;
        /** most runs that are kept of it, the newest, with their output; 0: all of the days that they are kept. 0 to 10000. */
        keep?: number;
        /** for how many days its runs are kept, with their output; 0: 30. 0 to 30. */
        keepdays?: number;
        /** Tags of the job. At most 1000 items. */
        tag?: readonly string[];
        /** command lines for the host's shell. 1 to 50 items. */
        exec?: readonly string[];
        /** seconds. */
        timeout?: number;
        /** 1: the schedule is on; 0: it is off. 0 to 1. */
        enable?: number;
      };
    };
    message: {
      /** Id of the job as an object. */
      id: string;
      /** Class of the job as an object. */
      class: string;
      /** <name>@<dir>. */
      fullname: string;
      /** Name of the job, without its folder. */
      name: string;
      /** Folder of the job; empty: none. */
      dir: string;
      /** Description for people. */
      description: string;
      /** Groups of hosts, separated by commas; empty: none. */
      group: string;
      /** parallel or empty: the hosts side by side; sequence: one after another; one: on one host. */
      groupmode: string;
      /** Hosts, as names and expressions. */
      host: string[];
      /** Script that runs on the controller before the first host; empty: none. */
      begin: string;
      /** Script that runs on the controller after the last host; empty: none. */
      end: string;
      /** Command lines. */
      exec: string[];
      /** Words that are appended to every command line. */
      arg: string[];
      /** Encoding of commands and their output on the hosts; empty: UTF-8. */
      argenc: string;
      /** User of the hosts who runs the commands; empty: that of the agent or the login. */
      user: string;
      /** When the job runs by itself; empty: never. */
      schedule: string;
      /** seconds. */
      timeout: number;
      /** How groupmode one chooses the host. */
      algorithm: string;
      /** Most executions at once, on all controllers together; 0 or less: no limit. */
      limit: number;
      /** 1: the schedule is on; 0: it is off. */
      enable: number;
      /** Queue whose jobs run one after another; empty: none. */
      queue: string;
      /** How often a host that failed is tried again. */
      retry: number;
      /** seconds. */
      retrydelay: number;
      /** Most runs that are kept, the newest; 0: all of the days that they are kept. */
      keep: number;
      /** days. */
      keepdays: number;
      /** when its schedule comes next, in milliseconds. */
      next?: number[];
      /** Tags of the job. */
      tag: string[];
      /** belongs to the platform. */
      system: boolean;
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the job. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Follows the output of a run on one host from a position until the run is over.
   *
   * `GET /job/output/{runid}/{host}`, permission: jobs:read.
   *
   * @example
   * for await (const { data } of client.events("getJobOutputByRunidByHost", {
   *   path: { runid: "01ARZ3NDEKTSV4RRFFQ69G5FAV", host: "web-1" },
   *   query: { from: 0 },
   * })) console.log(data);
   */
  getJobOutputByRunidByHost: {
    request: {
      path: {
        /** Id of the run. 1 to 100 characters. */
        runid: string;
        /** Host of the run. 1 to 255 characters. */
        host: string;
      };
      query?: {
        /** bytes of the output that the reader has. At least 0. */
        from?: number;
        /** ends before this byte, without waiting for the run. At least 0. */
        to?: number;
        /** begins so many bytes before the end of what is there, not before from. At least 0. */
        tail?: number;
        /** begins so many lines before the end of what is there, at most 1048576 bytes before it. At least 0. */
        lines?: number;
      };
    };
    event: {
      /** Position of the first byte in the output. */
      from?: number;
      /** Position behind the last byte. */
      to?: number;
      /** base64. */
      data?: string;
      /** End of the run; absent before. */
      end?: {
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** Exit code of the command; absent if there is none. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      };
    };
  };
  /**
   * Executes the job again on the hosts on which a run that has ended failed; answers the id of the new run.
   *
   * `POST /job/retry/{runid}`, permission: jobs:run.
   *
   * @example
   * await client.call("postJobRetryByRunid", { path: { runid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  postJobRetryByRunid: {
    request: {
      path: {
        /** Id of the run whose failed hosts are tried again. 1 to 100 characters. */
        runid: string;
      };
      body?: {
        /** JSON object, as of the run that is tried again: what that was given is not kept. */
        param?: string;
        /** seconds. */
        timeout?: number;
      };
    };
    message: string;
  };
  /**
   * How a run stands as a whole, with all its hosts and scripts: it waits, runs, or has ended.
   *
   * `GET /job/run/{runid}`, permission: jobs:read.
   *
   * @example
   * await client.call("getJobRunByRunid", { path: { runid: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  getJobRunByRunid: {
    request: {
      path: {
        /** Id of the run. 1 to 100 characters. */
        runid: string;
      };
    };
    message: {
      /** Id of the run. */
      runid: string;
      /** <name>@<dir>. */
      job: string;
      /** waiting: it has begun nothing yet, as in a queue; ended: all hosts and scripts have their ends, and none follows. */
      state: "waiting" | "running" | "ended";
      /** Milliseconds since 1970; absent while it waits. */
      started?: number;
      /** Milliseconds since 1970 of the last end; absent before. */
      ended?: number;
      /** Number of hosts in each state that the caller sees: those of the rows of /jobs/jobrun, and waiting for hosts that the run has not reached. */
      hosts: Record<string, number>;
      /** Number of scripts of the job in each state, as far as they have begun. */
      scripts: Record<string, number>;
    };
  };
  /**
   * How many jobs there are; what MQL shows of them is always what is stored.
   *
   * `GET /job/sync`, permission: jobs:read.
   *
   * @example
   * await client.call("getJobSync");
   */
  getJobSync: {
    request: Record<string, never>;
    message: number;
  };
  /**
   * Has the controller read its keys again where they come from.
   *
   * `POST /key/reload`, permission: tenants:write.
   *
   * @example
   * await client.call("postKeyReload");
   */
  postKeyReload: {
    request: {
      body?: Record<string, unknown>;
    };
    message: string;
  };
  /**
   * Which keys seal how much of what, for administrators of the first tenant.
   *
   * `GET /key/status`, permission: tenants:write.
   *
   * @example
   * await client.call("getKeyStatus");
   */
  getKeyStatus: {
    request: Record<string, never>;
    message: {
      /** Where the keys come from. */
      source: "file" | "text" | "command";
      /** Path of the key file on the machine of the controller that answers. */
      file?: string;
      /** Id of the key that is to seal: the first one of the key source. */
      wanted: string;
      /** Id of the key that seals on the controller that answers. */
      sealing: string;
      /** Each key that a sealed value needs or the key source lists. */
      keys: {
        /** Id of the key. */
        id: string;
        /** True: the key source lists the key. */
        listed: boolean;
        /** True: this controller can decrypt with it. */
        opens: boolean;
        /** Number of sealed values that need the key, by kind. */
        sealed: Record<string, number>;
        /** Number of all sealed values that need the key. */
        total: number;
      }[];
      /** Number of values not sealed with the wanted key, without those that expire by themselves. */
      left: number;
      /** Number of values that need another key until they expire. */
      ending: number;
      /** Deleted tenants whose data can be restored. Their values are not counted. */
      deletedTenants: string[];
      /** Keys of each controller that runs. */
      controllers: {
        /** Id of the run of the controller. */
        id: string;
        /** Address of the controller. */
        url: string;
        /** Id of the key that seals there; absent for a controller of an earlier version. */
        sealing?: string;
        /** Ids of the keys that it can decrypt with; absent for a controller of an earlier version. */
        opening?: string[];
      }[];
      /** Reason why nothing is being sealed again, or the last error. Absent: nothing prevents it. */
      waiting?: string;
    };
  };
  /**
   * Imports the licence of the tenant that it names.
   *
   * `POST /license/import`, permission: licences:write.
   *
   * @example
   * await client.call("postLicenseImport", { body: { uploadfile: { name: "example.txt", content: "{}" } } });
   */
  postLicenseImport: {
    request: {
      body: {
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: {
      /** The tenant. */
      name: string;
      /** Milliseconds since 1970; -1: never. */
      expire: number;
      /** -1: no limit. */
      server: number;
      /** -1: no limit. */
      agent: number;
      /** Of the imported document: a later one has a greater one. */
      serial?: number;
    };
  };
  /**
   * The licence of a tenant; -1 everywhere without one.
   *
   * `GET /license/info/{name}`, permission: licences:read.
   *
   * @example
   * await client.call("getLicenseInfoByName", { path: { name: "matrix" } });
   */
  getLicenseInfoByName: {
    request: {
      path: {
        /** Name of the tenant. */
        name: string;
      };
    };
    message: {
      /** The tenant. */
      name: string;
      /** Milliseconds since 1970; -1: never. */
      expire: number;
      /** -1: no limit. */
      server: number;
      /** -1: no limit. */
      agent: number;
      /** Of the imported document: a later one has a greater one. */
      serial?: number;
    };
  };
  /**
   * The bytes of a file of a snapshot for browsers, by the type of its name.
   *
   * `GET /local/{keyspace}/{path}`, permission: files:read.
   *
   * @example
   * const { body } = await client.download("getLocalByKeyspaceByPath", { path: { keyspace: "matrix", path: "reports/day.csv" } });
   */
  getLocalByKeyspaceByPath: {
    request: {
      path: {
        /** The tenant's name space without the slash in front. */
        keyspace: string;
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
    };
    content: true;
  };
  /**
   * Remove the snapshot of exactly this path; the files themselves stay.
   *
   * `DELETE /local/{keyspace}/{path}`, permission: files:write.
   *
   * @example
   * await client.call("deleteLocalByKeyspaceByPath", { path: { keyspace: "matrix", path: "reports" } });
   */
  deleteLocalByKeyspaceByPath: {
    request: {
      path: {
        /** The tenant's name space without the slash in front. */
        keyspace: string;
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space, not in the users'. For administrators only. */
        issys?: boolean;
      };
    };
    message: string;
  };
  /**
   * Puts depot versions on hosts.
   *
   * `POST /monitoring/deploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringDeploy", {
   *   body: { hosts: ["web-1"], depots: ["check"], versions: ["1.0.0"], timeout: 1 },
   * });
   */
  postMonitoringDeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** Names of the depots. At least 1 item. */
        depots: readonly string[];
        /** as many as depots. At least 1 item. */
        versions: readonly string[];
        /** Command line in place of the depot's own. A deployment runs it once the files are in place, an undeployment before it removes them. At most 8000 characters. */
        command?: string;
        /** Absolute path of the folder on the hosts that gets the files; empty: a folder of the agent. At most 1024 characters. */
        remotepath?: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
        /** Time such as 30m, 2h or 1d, at most 7d, for which hosts that are away are waited for. The answer is then the id of the deployment, at once; empty: no waiting. At most 20 characters. */
        wait?: string;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[] | {
      /** Id of the deployment. */
      id: string;
      /** What is done with the depots. */
      action: "deploy" | "undeploy";
      /** Depots, in the order in which a host gets them. */
      depots: {
        /** Name of the depot. */
        depot: string;
        /** Version of the depot. */
        version: string;
      }[];
      /** User who asked for it, with whose present rights it acts. */
      username: string;
      /** Time of the call, in milliseconds since 1970. */
      createdMs: number;
      /** End of the wait, in milliseconds since 1970. */
      untilMs: number;
      /** User who cancelled it; absent: it is not cancelled. */
      cancelledBy?: string;
    };
  };
  /**
   * Lists deployments that wait for hosts, and those that did, the newest first.
   *
   * `GET /monitoring/deployment`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDeployment");
   */
  getMonitoringDeployment: {
    request: Record<string, never>;
    message: {
      /** Id of the deployment. */
      id: string;
      /** What is done with the depots. */
      action: "deploy" | "undeploy";
      /** Depots, in the order in which a host gets them. */
      depots: {
        /** Name of the depot. */
        depot: string;
        /** Version of the depot. */
        version: string;
      }[];
      /** User who asked for it, with whose present rights it acts. */
      username: string;
      /** Time of the call, in milliseconds since 1970. */
      createdMs: number;
      /** End of the wait, in milliseconds since 1970. */
      untilMs: number;
      /** User who cancelled it; absent: it is not cancelled. */
      cancelledBy?: string;
      /** open: a host has no final state yet. ended: all hosts have one. */
      state: "open" | "ended";
    }[];
  };
  /**
   * State of each host of a deployment that waits.
   *
   * `GET /monitoring/deployment/{id}`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDeploymentById", { path: { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  getMonitoringDeploymentById: {
    request: {
      path: {
        /** Id of the deployment. 1 to 100 characters. */
        id: string;
      };
    };
    message: {
      /** Id of the deployment. */
      id: string;
      /** What is done with the depots. */
      action: "deploy" | "undeploy";
      /** Depots, in the order in which a host gets them. */
      depots: {
        /** Name of the depot. */
        depot: string;
        /** Version of the depot. */
        version: string;
      }[];
      /** User who asked for it, with whose present rights it acts. */
      username: string;
      /** Time of the call, in milliseconds since 1970. */
      createdMs: number;
      /** End of the wait, in milliseconds since 1970. */
      untilMs: number;
      /** User who cancelled it; absent: it is not cancelled. */
      cancelledBy?: string;
      /** States of the hosts. */
      hosts: {
        /** Name of the host. */
        host: string;
        /** waiting: the host is away, or an earlier deployment is before it. expired: the wait ended before the host came back. failed: a depot did not end as ok, or the user may no longer do it. */
        state: "waiting" | "running" | "ok" | "failed" | "expired" | "cancelled";
        /** Reason of a state other than ok; empty: none. */
        message: string;
        /** Time since which the host has this state, in milliseconds since 1970. */
        sinceMs: number;
        /** Results of the depots that have one. */
        outcomes: {
          /** Name of the host. */
          host: string;
          /** Name of the depot. */
          depot: string;
          /** Version of the depot. */
          version: string;
          /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
          state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
          /** Exit code of the command; absent if none ran to its end. */
          code?: number;
          /** Reason or output of the command; empty: nothing to report. */
          message: string;
          /** milliseconds since 1970. */
          startedMs: number;
          /** milliseconds since 1970. */
          endedMs: number;
        }[];
      }[];
    };
  };
  /**
   * Cancels a deployment on the hosts that it waits for.
   *
   * `DELETE /monitoring/deployment/{id}`, permission: depots:run.
   *
   * @example
   * await client.call("deleteMonitoringDeploymentById", { path: { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  deleteMonitoringDeploymentById: {
    request: {
      path: {
        /** Id of the deployment. 1 to 100 characters. */
        id: string;
      };
    };
    message: {
      /** Id of the deployment. */
      id: string;
      /** What is done with the depots. */
      action: "deploy" | "undeploy";
      /** Depots, in the order in which a host gets them. */
      depots: {
        /** Name of the depot. */
        depot: string;
        /** Version of the depot. */
        version: string;
      }[];
      /** User who asked for it, with whose present rights it acts. */
      username: string;
      /** Time of the call, in milliseconds since 1970. */
      createdMs: number;
      /** End of the wait, in milliseconds since 1970. */
      untilMs: number;
      /** User who cancelled it; absent: it is not cancelled. */
      cancelledBy?: string;
      /** States of the hosts. */
      hosts: {
        /** Name of the host. */
        host: string;
        /** waiting: the host is away, or an earlier deployment is before it. expired: the wait ended before the host came back. failed: a depot did not end as ok, or the user may no longer do it. */
        state: "waiting" | "running" | "ok" | "failed" | "expired" | "cancelled";
        /** Reason of a state other than ok; empty: none. */
        message: string;
        /** Time since which the host has this state, in milliseconds since 1970. */
        sinceMs: number;
        /** Results of the depots that have one. */
        outcomes: {
          /** Name of the host. */
          host: string;
          /** Name of the depot. */
          depot: string;
          /** Version of the depot. */
          version: string;
          /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
          state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
          /** Exit code of the command; absent if none ran to its end. */
          code?: number;
          /** Reason or output of the command; empty: nothing to report. */
          message: string;
          /** milliseconds since 1970. */
          startedMs: number;
          /** milliseconds since 1970. */
          endedMs: number;
        }[];
      }[];
    };
  };
  /**
   * Lists the depots.
   *
   * `GET /monitoring/depot`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDepot");
   */
  getMonitoringDepot: {
    request: Record<string, never>;
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Changes or adds a depot version.
   *
   * `PUT /monitoring/depot`, permission: depots:write.
   *
   * @example
   * await client.call("putMonitoringDepot", {
   *   body: {
   *     name: "check",
   *     version: "1.1.0",
   *     uploadfile: [{ name: "example.txt", content: "#!/bin/sh\ncat /proc/loadavg\n" }],
   *   },
   * });
   */
  putMonitoringDepot: {
    request: {
      body: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /** Remark for people; stored and shown as it is. At most 8000 characters. */
        remark?: string;
        /** Tags of the depot. At most 1000 items. */
        tags?: readonly string[];
        /** run in the depot's folder once it is in place. At most 8000 characters. */
        command?: string;
        /** Encoding of names in an archive that does not say their own, such as gbk; UTF-8 when absent. */
        encoding?: string;
        /** replaces the files of a version that exists. */
        overwrite?: boolean;
        uploadfile?: readonly Upload[];
      };
    };
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
      /** Files of the version. */
      files: {
        /** Path below the folder of the depot. */
        path: string;
        /** SHA-256 of the content in hexadecimal digits. */
        digest: string;
        /** bytes. */
        size: number;
        /** True: hosts may run the file. */
        executable: boolean;
      }[];
    };
    revised: true;
  };
  /**
   * Uploads a new depot version.
   *
   * `POST /monitoring/depot`, permission: depots:write.
   *
   * @example
   * await client.call("postMonitoringDepot", {
   *   body: {
   *     name: "check",
   *     version: "1.0.0",
   *     remark: "Checks the load",
   *     uploadfile: { name: "example.txt", content: "#!/bin/sh\ncat /proc/loadavg\n" },
   *   },
   * });
   */
  postMonitoringDepot: {
    request: {
      body: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /** Remark for people; stored and shown as it is. At most 8000 characters. */
        remark?: string;
        /** Tags of the depot. At most 1000 items. */
        tags?: readonly string[];
        /** run in the depot's folder once it is in place. At most 8000 characters. */
        command?: string;
        /** Encoding of names in an archive that does not say their own, such as gbk; UTF-8 when absent. */
        encoding?: string;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
      /** Files of the version. */
      files: {
        /** Path below the folder of the depot. */
        path: string;
        /** SHA-256 of the content in hexadecimal digits. */
        digest: string;
        /** bytes. */
        size: number;
        /** True: hosts may run the file. */
        executable: boolean;
      }[];
    };
    revised: true;
  };
  /**
   * One depot version with its files, the newest by default.
   *
   * `GET /monitoring/depot/{name}`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDepotByName", { path: { name: "check" }, query: { version: "1.0.0" } });
   */
  getMonitoringDepotByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      query?: {
        /** empty: the newest. At most 50 characters. */
        version?: string;
      };
    };
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
      /** Files of the version. */
      files: {
        /** Path below the folder of the depot. */
        path: string;
        /** SHA-256 of the content in hexadecimal digits. */
        digest: string;
        /** bytes. */
        size: number;
        /** True: hosts may run the file. */
        executable: boolean;
      }[];
    };
  };
  /**
   * Deletes a depot, or one version of it.
   *
   * `DELETE /monitoring/depot/{name}`, permission: depots:write.
   *
   * @example
   * await client.call("deleteMonitoringDepotByName", { path: { name: "check" }, query: { version: "1.0.0" } });
   */
  deleteMonitoringDepotByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      query?: {
        /** empty: the newest. At most 50 characters. */
        version?: string;
        /** also what policies use. */
        force?: boolean;
      };
    };
    message: number;
    revised: true;
  };
  /**
   * Differences of two versions, file by file.
   *
   * `GET /monitoring/depot/diff/{name}`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDepotDiffByName", {
   *   path: { name: "check" },
   *   query: { version: "1.1.0", compareVersion: "1.2.0" },
   * });
   */
  getMonitoringDepotDiffByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      query: {
        /** three numbers: 1.0.0. */
        version: string;
        /** three numbers: 1.0.0. */
        compareVersion: string;
      };
    };
    message: {
      /** Path below the folder of the depot. */
      path: string;
      /** What the second version did with the file. */
      change: "added" | "removed" | "modified";
      /** True: the contents are no text, so there is no diff. */
      binary: boolean;
      /** unified diff. */
      diff?: string;
    }[];
  };
  /**
   * Whether a depot, or one version of it, exists.
   *
   * `GET /monitoring/depot/exist/{name}`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDepotExistByName", { path: { name: "check" }, query: { version: "1.0.0" } });
   */
  getMonitoringDepotExistByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      query?: {
        /** empty: the newest. At most 50 characters. */
        version?: string;
      };
    };
    message: boolean;
  };
  /**
   * Makes a new version with one file modified, added or deleted.
   *
   * `PUT /monitoring/depot/file`, permission: depots:write.
   *
   * @example
   * await client.call("putMonitoringDepotFile", {
   *   body: {
   *     name: "check",
   *     version: "1.1.0",
   *     newVersion: "1.2.0",
   *     filepath: "check.sh",
   *     type: "M",
   *     content: "#!/bin/sh\nuptime\n",
   *   },
   * });
   */
  putMonitoringDepotFile: {
    request: {
      body: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /** three numbers: 1.0.0. */
        newVersion: string;
        /** Path of the file below the folder of the depot. 1 to 1024 characters. */
        filepath: string;
        /** modify, add, delete. */
        type: "M" | "A" | "D";
        /** Text of the file, stored in UTF-8; a file part of this call keeps its bytes. */
        content?: string;
        /** Remark for people; stored and shown as it is. At most 8000 characters. */
        remark?: string;
        /** Tags of the depot. At most 1000 items. */
        tags?: readonly string[];
        uploadfile?: readonly Upload[];
      };
    };
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
      /** Files of the version. */
      files: {
        /** Path below the folder of the depot. */
        path: string;
        /** SHA-256 of the content in hexadecimal digits. */
        digest: string;
        /** bytes. */
        size: number;
        /** True: hosts may run the file. */
        executable: boolean;
      }[];
    };
    revised: true;
  };
  /**
   * Content of a text file of a depot.
   *
   * `GET /monitoring/depot/file/{name}`, permission: depots:read.
   *
   * @example
   * await client.call("getMonitoringDepotFileByName", { path: { name: "check" }, query: { version: "1.0.0", filepath: "check.sh" } });
   */
  getMonitoringDepotFileByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      query: {
        /** three numbers: 1.0.0. */
        version: string;
        /** Path of the file below the folder of the depot. 1 to 1024 characters. */
        filepath: string;
      };
    };
    message: string;
  };
  /**
   * Makes a new version with one file modified, added or deleted.
   *
   * `PUT /monitoring/depot/file/{name}`, permission: depots:write.
   *
   * @example
   * await client.call("putMonitoringDepotFileByName", {
   *   path: { name: "check" },
   *   body: {
   *     version: "1.1.0",
   *     newVersion: "1.3.0",
   *     filepath: "check.sh",
   *     type: "M",
   *     content: "#!/bin/sh\nuptime\n",
   *   },
   * });
   */
  putMonitoringDepotFileByName: {
    request: {
      path: {
        /** Name of the depot. 1 to 255 characters. */
        name: string;
      };
      body: {
        /** three numbers: 1.0.0. */
        version: string;
        /** three numbers: 1.0.0. */
        newVersion: string;
        /** Path of the file below the folder of the depot. 1 to 1024 characters. */
        filepath: string;
        /** modify, add, delete. */
        type: "M" | "A" | "D";
        /** Text of the file, stored in UTF-8; a file part of this call keeps its bytes. */
        content?: string;
        /** Remark for people; stored and shown as it is. At most 8000 characters. */
        remark?: string;
        /** Tags of the depot. At most 1000 items. */
        tags?: readonly string[];
        uploadfile?: readonly Upload[];
      };
    };
    message: {
      /** Id of the depot as an object. */
      id: string;
      /** Class of the depot as an object. */
      class: string;
      /** Name of the depot. */
      name: string;
      /** Version that the call names, otherwise the newest. */
      version: string;
      /** All versions, the newest last. */
      versions: string[];
      /** Remark of the version. */
      remark: string;
      /** Tags of the version. */
      tags: string[];
      /** Command line that runs in the depot's folder once it is in place; empty: none. */
      command: string;
      /** Always ok. */
      status: string;
      /** Number of files of the version. */
      filecount: number;
      /** bytes. */
      size: number;
      /** milliseconds since 1970. */
      created: number;
      /** User who stored the files of the version. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
      /** Files of the version. */
      files: {
        /** Path below the folder of the depot. */
        path: string;
        /** SHA-256 of the content in hexadecimal digits. */
        digest: string;
        /** bytes. */
        size: number;
        /** True: hosts may run the file. */
        executable: boolean;
      }[];
    };
    revised: true;
  };
  /**
   * Puts external agents on hosts and starts them.
   *
   * `POST /monitoring/extagent/deploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringExtagentDeploy", {
   *   body: {
   *     hosts: ["web-1"],
   *     name: "check",
   *     version: "1.0.0",
   *     key: "a pre-shared key",
   *     command: "chown zabbix agent.key",
   *     timeout: 1,
   *   },
   * });
   */
  postMonitoringExtagentDeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** a depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /** content of agent.key in the folder of the agent; without it the file is not changed. At most 16000 characters. */
        key?: string;
        /** run in the folder of the agent before it starts; without it, the depot's own command. At most 8000 characters. */
        command?: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents and starts them again.
   *
   * `POST /monitoring/extagent/restart`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringExtagentRestart", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringExtagentRestart: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Starts external agents.
   *
   * `POST /monitoring/extagent/start`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringExtagentStart", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringExtagentStart: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents.
   *
   * `POST /monitoring/extagent/stop`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringExtagentStop", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringExtagentStop: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents and takes them off hosts.
   *
   * `POST /monitoring/extagent/undeploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringExtagentUndeploy", { body: { hosts: ["web-1"], name: "check", version: "1.0.0", timeout: 1 } });
   */
  postMonitoringExtagentUndeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** a depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Lists the policies.
   *
   * `GET /monitoring/policy`, permission: policies:read.
   *
   * @example
   * await client.call("getMonitoringPolicy");
   */
  getMonitoringPolicy: {
    request: Record<string, never>;
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Creates or replaces a command policy.
   *
   * `POST /monitoring/policy`, permission: policies:write.
   *
   * @example
   * await client.call("postMonitoringPolicy", {
   *   body: {
   *     name: "load",
   *     rule: "/matrix/rules/visit",
   *     command: "uptime",
   *     ctype: 1,
   *     interval: 5,
   *     unit: "minute",
   *   },
   * });
   */
  postMonitoringPolicy: {
    request: {
      body: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
        /** Configuration key of the rule that parses the records, such as /matrix/rules/access. 1 to 500 characters. */
        rule: string;
        /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
        delimiter?: string;
        /** True: the delimiter ends a record, instead of beginning one. */
        delimitereol?: boolean;
        /** Tags of the policy. */
        tags?: readonly string[];
        hosts?: readonly string[];
        /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
        attrs?: Record<string, string>;
        /** Command line. 1 to 8000 characters. */
        command: string;
        /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
        ctype: number;
        /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
        depotname?: string;
        /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
        depotversion?: string;
        /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
        depotcommand?: string;
        /** in the unit; without effect with isdaemon. 1 to 1000000. */
        interval: number;
        /** Unit of interval; without effect with isdaemon. */
        unit: "year" | "month" | "day" | "hour" | "minute" | "second";
        /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
        split?: boolean;
        /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
        isdaemon?: boolean;
        /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
        timeout?: number;
        /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
        overlap?: "skip" | "queue" | "replace" | "";
        /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
        outputlimit?: number;
        /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
        backoff?: number;
        /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
        user?: string;
        /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
        environment?: Record<string, string>;
        /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
        memorylimit?: number;
        /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
        cpulimit?: number;
        /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
        nice?: number;
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * One policy.
   *
   * `GET /monitoring/policy/{name}`, permission: policies:read.
   *
   * @example
   * await client.call("getMonitoringPolicyByName", { path: { name: "load" } });
   */
  getMonitoringPolicyByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
  };
  /**
   * Changes the members that are sent.
   *
   * `PATCH /monitoring/policy/{name}`, permission: policies:write.
   *
   * @example
   * await client.call("patchMonitoringPolicyByName", { path: { name: "load" }, body: { interval: 10 } });
   */
  patchMonitoringPolicyByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
      body?: {
        /** Configuration key of the rule that parses the records, such as /matrix/rules/access. 1 to 500 characters. */
        rule?: string;
        /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
        delimiter?: string;
        /** True: the delimiter ends a record, instead of beginning one. */
        delimitereol?: boolean;
        /** Tags of the policy. */
        tags?: readonly string[];
        hosts?: readonly string[];
        /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
        attrs?: Record<string, string>;
        /** Command line. 1 to 8000 characters. */
        command?: string;
        /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
        ctype?: number;
        /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
        depotname?: string;
        /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
        depotversion?: string;
        /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
        depotcommand?: string;
        /** in the unit; without effect with isdaemon. 1 to 1000000. */
        interval?: number;
        /** Unit of interval; without effect with isdaemon. */
        unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
        /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
        split?: boolean;
        /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
        isdaemon?: boolean;
        /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
        timeout?: number;
        /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
        overlap?: "skip" | "queue" | "replace" | "";
        /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
        outputlimit?: number;
        /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
        backoff?: number;
        /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
        user?: string;
        /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
        environment?: Record<string, string>;
        /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
        memorylimit?: number;
        /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
        cpulimit?: number;
        /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
        nice?: number;
        /** Folder of the log files on the host. 1 to 4000 characters. */
        dir?: string;
        /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
        match?: string;
        /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
        matchregexp?: string;
        /** Groups of match that order the files of one log, most significant first. */
        priority?: readonly string[];
        /** Group of priority: numbers by captured text, for that order, ascending. */
        translation?: Record<string, Record<string, number>>;
        /** Group of match that tells one log from another; empty: none. At most 100 characters. */
        differentiator?: string;
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Deletes a policy.
   *
   * `DELETE /monitoring/policy/{name}`, permission: policies:write.
   *
   * @example
   * await client.call("deleteMonitoringPolicyByName", { path: { name: "load" } });
   */
  deleteMonitoringPolicyByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
      query?: {
        /** also a policy that is deployed. */
        force?: boolean;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * States of the conf of a policy on its hosts.
   *
   * `GET /monitoring/policy/conf/{name}`, permission: policies:read.
   *
   * @example
   * await client.call("getMonitoringPolicyConfByName", { path: { name: "load" } });
   */
  getMonitoringPolicyConfByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** ok: the host has what is wanted. waiting: its agent has not confirmed it. unassigned: the policy is not deployed to the host, which gets the conf with the policy. failed: nothing was changed. */
      state: "ok" | "waiting" | "unassigned" | "failed";
      /** why it is not ok. */
      message: string;
      /** SHA-256 of the wanted bytes; empty: the host is to have no conf. */
      digest: string;
      /** Size of the wanted conf; 0 without one. */
      bytes: number;
    }[];
  };
  /**
   * Deploys a policy to its hosts.
   *
   * `POST /monitoring/policy/deploy/{name}`, permission: policies:run.
   *
   * @example
   * await client.call("postMonitoringPolicyDeployByName", { path: { name: "load" }, query: { hosts: ["web-1"] } });
   */
  postMonitoringPolicyDeployByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
      query?: {
        /** added to the policy's hosts. */
        hosts?: readonly string[];
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Gives hosts the conf of a policy.
   *
   * `PUT /monitoring/policy/deploy/conf/{name}`, permission: policies:run.
   *
   * @example
   * await client.call("putMonitoringPolicyDeployConfByName", { path: { name: "load" }, body: { hosts: ["web-1"], conf: "warn=4\n" } });
   */
  putMonitoringPolicyDeployConfByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** written in UTF-8; a file part of this name keeps its bytes; may be empty. */
        conf?: string;
        uploadfile?: readonly Upload[];
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** ok: the host has what is wanted. waiting: its agent has not confirmed it. unassigned: the policy is not deployed to the host, which gets the conf with the policy. failed: nothing was changed. */
      state: "ok" | "waiting" | "unassigned" | "failed";
      /** why it is not ok. */
      message: string;
      /** SHA-256 of the wanted bytes; empty: the host is to have no conf. */
      digest: string;
      /** Size of the wanted conf; 0 without one. */
      bytes: number;
    }[];
  };
  /**
   * The extension table of a rule, LTSV; empty without one.
   *
   * `GET /monitoring/policy/extend/{path}`, permission: rules:read.
   *
   * @example
   * await client.call("getMonitoringPolicyExtendByPath", { path: { path: "matrix/rules/visit" } });
   */
  getMonitoringPolicyExtendByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
    };
    message: string;
  };
  /**
   * Replace the extension table of a rule by the body, LTSV.
   *
   * `POST /monitoring/policy/extend/{path}`, permission: rules:write.
   *
   * @example
   * await client.call("postMonitoringPolicyExtendByPath", { path: { path: "matrix/rules/visit" }, body: "key:/start\tsite:north\n" });
   */
  postMonitoringPolicyExtendByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      /** The table, LTSV. */
      body?: Content;
    };
    message: string;
  };
  /**
   * Creates or replaces a log policy.
   *
   * `POST /monitoring/policy/log`, permission: policies:write.
   *
   * @example
   * await client.call("postMonitoringPolicyLog", {
   *   body: {
   *     name: "access",
   *     rule: "/matrix/rules/visit",
   *     dir: "/var/log/nginx",
   *     match: "access\\.log",
   *   },
   * });
   */
  postMonitoringPolicyLog: {
    request: {
      body: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
        /** Configuration key of the rule that parses the records, such as /matrix/rules/access. 1 to 500 characters. */
        rule: string;
        /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
        delimiter?: string;
        /** True: the delimiter ends a record, instead of beginning one. */
        delimitereol?: boolean;
        /** Tags of the policy. */
        tags?: readonly string[];
        hosts?: readonly string[];
        /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
        attrs?: Record<string, string>;
        /** Folder of the log files on the host. 1 to 4000 characters. */
        dir: string;
        /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
        match: string;
        /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
        matchregexp?: string;
        /** Groups of match that order the files of one log, most significant first. */
        priority?: readonly string[];
        /** Group of priority: numbers by captured text, for that order, ascending. */
        translation?: Record<string, Record<string, number>>;
        /** Group of match that tells one log from another; empty: none. At most 100 characters. */
        differentiator?: string;
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Shows the records that a policy, saved or given, has on a host now, and what its rule makes of them; also needs policies:run and jobs:run; nothing is stored.
   *
   * `POST /monitoring/policy/preview`, permission: policies:write.
   *
   * @example
   * await client.call("postMonitoringPolicyPreview", { body: { name: "load", host: "web-1" } });
   */
  postMonitoringPolicyPreview: {
    request: {
      body: {
        /** Name of a saved policy. 1 to 200 characters. */
        name?: string;
        /** Draft of a command policy. */
        command?: {
          /** Name of the policy. 1 to 200 characters. */
          name: string;
          /** Configuration key of the rule that parses the records, such as /matrix/rules/access. 1 to 500 characters. */
          rule: string;
          /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
          delimiter?: string;
          /** True: the delimiter ends a record, instead of beginning one. */
          delimitereol?: boolean;
          /** Tags of the policy. */
          tags?: readonly string[];
          hosts?: readonly string[];
          /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
          attrs?: Record<string, string>;
          /** Command line. 1 to 8000 characters. */
          command: string;
          /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
          ctype: number;
          /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
          depotname?: string;
          /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
          depotversion?: string;
          /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
          depotcommand?: string;
          /** in the unit; without effect with isdaemon. 1 to 1000000. */
          interval: number;
          /** Unit of interval; without effect with isdaemon. */
          unit: "year" | "month" | "day" | "hour" | "minute" | "second";
          /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
          split?: boolean;
          /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
          isdaemon?: boolean;
          /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
          timeout?: number;
          /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
          overlap?: "skip" | "queue" | "replace" | "";
          /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
          outputlimit?: number;
          /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
          backoff?: number;
          /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
          user?: string;
          /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
          environment?: Record<string, string>;
          /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
          memorylimit?: number;
          /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
          cpulimit?: number;
          /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
          nice?: number;
        };
        /** Draft of a log policy. */
        log?: {
          /** Name of the policy. 1 to 200 characters. */
          name: string;
          /** Configuration key of the rule that parses the records, such as /matrix/rules/access. 1 to 500 characters. */
          rule: string;
          /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
          delimiter?: string;
          /** True: the delimiter ends a record, instead of beginning one. */
          delimitereol?: boolean;
          /** Tags of the policy. */
          tags?: readonly string[];
          hosts?: readonly string[];
          /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
          attrs?: Record<string, string>;
          /** Folder of the log files on the host. 1 to 4000 characters. */
          dir: string;
          /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
          match: string;
          /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
          matchregexp?: string;
          /** Groups of match that order the files of one log, most significant first. */
          priority?: readonly string[];
          /** Group of priority: numbers by captured text, for that order, ascending. */
          translation?: Record<string, Record<string, number>>;
          /** Group of match that tells one log from another; empty: none. At most 100 characters. */
          differentiator?: string;
        };
        /** Name of the host to read from. 1 to 200 characters. */
        host: string;
        /** Maximum number of records, 20 without it: the first of a command, the newest of a log. 1 to 200. */
        records?: number;
      };
    };
    message: {
      /** Of the rule; empty where its body names classes, and of a pattern. */
      class: string;
      /** Each record of the sample. */
      records: {
        /** Of the sample, from 1. */
        line: number;
        /** The record of the policy. */
        raw?: {
          /** Text of the record. */
          text: string;
          /** Milliseconds since 1970. */
          time: number;
          /** Host that sent the record. */
          host: string;
          /** File or command of the record. */
          source: string;
        };
        /** Of pattern: what it captures of the record, by name. */
        fields?: Record<string, string | number>;
        /** Rows that the rule makes of the record. */
        rows: {
          /** Path of the class of the row. */
          class: string;
          /** Values by column. */
          values: Record<string, unknown>;
          /** Milliseconds since 1970, where --time gives the record a time of its own. */
          time?: number;
        }[];
        /** Why the record, or a row of it, does not fit. */
        errors: {
          /** The error in words. */
          message: string;
          /** Of the rule's text, where its body went wrong. */
          line?: number;
          /** Column of the rule's text, from 1. */
          column?: number;
        }[];
      }[];
      /** Messages of the body. */
      log: {
        /** Level of the message, such as info. */
        level: string;
        /** Text of the message. */
        msg: string;
      }[];
      /** Functions that bodies called and a trial does not carry out. */
      notCalled: string[];
      /** Mean time for a record, in milliseconds. */
      msPerRecord: number;
      /** ended: the command ended by itself, or the log was read. enough: the command was ended, because enough was read. timeout: it was ended at the deadline of the preview. */
      state: "ended" | "enough" | "timeout";
      /** Exit code; absent if the command was ended. */
      code?: number;
      /** End of the error output of the command. */
      errors: string;
      /** command, or the path of the log file; empty: no file matches. */
      source: string;
    };
  };
  /**
   * Stops a policy on all its hosts.
   *
   * `POST /monitoring/policy/undeploy/{name}`, permission: policies:run.
   *
   * @example
   * await client.call("postMonitoringPolicyUndeployByName", { path: { name: "load" } });
   */
  postMonitoringPolicyUndeployByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
    };
    message: {
      /** Name of the policy. */
      name: string;
      /** Configuration key of the rule that parses the records. */
      rule: string;
      /** Regular expression that separates records; a line feed if absent or empty. Without effect where the output of a run is one record. At most 1000 characters. */
      delimiter?: string;
      /** True: the delimiter ends a record, instead of beginning one. */
      delimitereol?: boolean;
      /** Tags of the policy. */
      tags: string[];
      /** as they were sent: names, and expressions. */
      hosts: string[];
      /** time_zone: the zone of times in the records that name none, unless the rule names one. encoding: that of the records. heading, of log policies: first, where the first line of each file names its columns, or a regular expression of the lines that do; without it these are the lines #Fields: of W3C logs. */
      attrs?: Record<string, string>;
      /** Command line. 1 to 8000 characters. */
      command?: string;
      /** 0: the command runs in the folder of the depot; 1: a plain command. 0 to 1. */
      ctype?: number;
      /** Depot with the command; required for ctype 0, without effect for 1. 1 to 200 characters. */
      depotname?: string;
      /** Version of the depot; required for ctype 0, without effect for 1. 1 to 50 characters. */
      depotversion?: string;
      /** Command line that runs once the depot is in place; empty: that of the depot. Without effect for ctype 1. At most 8000 characters. */
      depotcommand?: string;
      /** in the unit; without effect with isdaemon. 1 to 1000000. */
      interval?: number;
      /** Unit of interval; without effect with isdaemon. */
      unit?: "year" | "month" | "day" | "hour" | "minute" | "second";
      /** True: output is cut into records; otherwise the whole output of a run is one record. Without effect with isdaemon. */
      split?: boolean;
      /** True: the command runs for ever and is restarted when it ends; its output is cut as it arrives. */
      isdaemon?: boolean;
      /** seconds after which a run is ended with all its processes, and fails; 21600 if absent. Without effect with isdaemon. 1 to 21600. */
      timeout?: number;
      /** when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon. */
      overlap?: "skip" | "queue" | "replace" | "";
      /** bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon. 1 to 1099511627776. */
      outputlimit?: number;
      /** longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute. 1 to 604800. */
      backoff?: number;
      /** user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another. */
      user?: string;
      /** environment variables of the command, by name. Names with ODP_ are set by the agent. */
      environment?: Record<string, string>;
      /** bytes of address space that each process of the command may have. 1048576 to 1099511627776. */
      memorylimit?: number;
      /** seconds of processor time after which a process of the command is ended. 1 to 86400. */
      cpulimit?: number;
      /** added to the niceness of the agent: the higher, the later the command gets the processor. 0 to 19. */
      nice?: number;
      /** Folder of the log files on the host. 1 to 4000 characters. */
      dir?: string;
      /** Regular expression for the file's path below dir. Named groups are stored with the records. 1 to 1000 characters. */
      match?: string;
      /** Regular expression of the records that are sent; empty: all. At most 1000 characters. */
      matchregexp?: string;
      /** Groups of match that order the files of one log, most significant first. */
      priority?: string[];
      /** Group of priority: numbers by captured text, for that order, ascending. */
      translation?: Record<string, Record<string, number>>;
      /** Group of match that tells one log from another; empty: none. At most 100 characters. */
      differentiator?: string;
      /** Id of the policy as an object. */
      id: string;
      /** Class of the policy as an object. */
      class: string;
      /** command: output of a command; log: lines of files. */
      kind: "command" | "log";
      /** hosts that the entries of hosts mean now; only if one is an expression. */
      matched?: string[];
      /** deployed: its hosts are to run it; policystate shows whether they do. */
      status: "deployed" | "undeployed";
      /** milliseconds since 1970. */
      created: number;
      /** milliseconds since 1970. */
      changed: number;
      /** User who made the policy. */
      creator: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
    revised: true;
  };
  /**
   * Removes the conf of a policy from hosts.
   *
   * `DELETE /monitoring/policy/undeploy/conf/{name}`, permission: policies:run.
   *
   * @example
   * await client.call("deleteMonitoringPolicyUndeployConfByName", { path: { name: "load" }, query: { hosts: ["web-1"] } });
   */
  deleteMonitoringPolicyUndeployConfByName: {
    request: {
      path: {
        /** Name of the policy. 1 to 200 characters. */
        name: string;
      };
      query: {
        /** At least 1 item. */
        hosts: readonly string[];
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** ok: the host has what is wanted. waiting: its agent has not confirmed it. unassigned: the policy is not deployed to the host, which gets the conf with the policy. failed: nothing was changed. */
      state: "ok" | "waiting" | "unassigned" | "failed";
      /** why it is not ok. */
      message: string;
      /** SHA-256 of the wanted bytes; empty: the host is to have no conf. */
      digest: string;
      /** Size of the wanted conf; 0 without one. */
      bytes: number;
    }[];
  };
  /**
   * Removals of hosts from policies that wait for a confirmation.
   *
   * `GET /monitoring/targets`, permission: policies:read.
   *
   * @example
   * await client.call("getMonitoringTargets");
   */
  getMonitoringTargets: {
    request: Record<string, never>;
    message: {
      /** for POST /monitoring/targets/confirm; another one if hosts are added. */
      id: string;
      /** Name of the policy. */
      policy: string;
      /** milliseconds since 1970. */
      since: number;
      /** who saved the hosts of the policy. */
      username: string;
      /** hosts that have the policy, with those of the change. */
      matched: number;
      /** hosts that lose the policy. */
      hosts: string[];
    }[];
  };
  /**
   * Carries out a removal of hosts that is held.
   *
   * `POST /monitoring/targets/confirm`, permission: policies:run.
   *
   * @example
   * await client.call("postMonitoringTargetsConfirm", { query: { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" } });
   */
  postMonitoringTargetsConfirm: {
    request: {
      query: {
        /** Id of the held change, as the list has it. 1 to 100 characters. */
        id: string;
      };
    };
    message: {
      /** for POST /monitoring/targets/confirm; another one if hosts are added. */
      id: string;
      /** Name of the policy. */
      policy: string;
      /** milliseconds since 1970. */
      since: number;
      /** who saved the hosts of the policy. */
      username: string;
      /** hosts that have the policy, with those of the change. */
      matched: number;
      /** hosts that lose the policy. */
      hosts: string[];
    };
  };
  /**
   * Takes depot versions off hosts.
   *
   * `POST /monitoring/undeploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringUndeploy", {
   *   body: { hosts: ["web-1"], depots: ["check"], versions: ["1.0.0"], timeout: 1 },
   * });
   */
  postMonitoringUndeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** Names of the depots. At least 1 item. */
        depots: readonly string[];
        /** as many as depots. At least 1 item. */
        versions: readonly string[];
        /** Command line in place of the depot's own. A deployment runs it once the files are in place, an undeployment before it removes them. At most 8000 characters. */
        command?: string;
        /** Absolute path of the folder on the hosts that gets the files; empty: a folder of the agent. At most 1024 characters. */
        remotepath?: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
        /** Time such as 30m, 2h or 1d, at most 7d, for which hosts that are away are waited for. The answer is then the id of the deployment, at once; empty: no waiting. At most 20 characters. */
        wait?: string;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[] | {
      /** Id of the deployment. */
      id: string;
      /** What is done with the depots. */
      action: "deploy" | "undeploy";
      /** Depots, in the order in which a host gets them. */
      depots: {
        /** Name of the depot. */
        depot: string;
        /** Version of the depot. */
        version: string;
      }[];
      /** User who asked for it, with whose present rights it acts. */
      username: string;
      /** Time of the call, in milliseconds since 1970. */
      createdMs: number;
      /** End of the wait, in milliseconds since 1970. */
      untilMs: number;
      /** User who cancelled it; absent: it is not cancelled. */
      cancelledBy?: string;
    };
  };
  /**
   * Puts external agents on hosts and starts them.
   *
   * `POST /monitoring/zabbix/deploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringZabbixDeploy", {
   *   body: {
   *     hosts: ["web-1"],
   *     name: "check",
   *     version: "1.0.0",
   *     key: "a pre-shared key",
   *     command: "chown zabbix agent.key",
   *     timeout: 1,
   *   },
   * });
   */
  postMonitoringZabbixDeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** a depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /** content of agent.key in the folder of the agent; without it the file is not changed. At most 16000 characters. */
        key?: string;
        /** run in the folder of the agent before it starts; without it, the depot's own command. At most 8000 characters. */
        command?: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents and starts them again.
   *
   * `POST /monitoring/zabbix/restart`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringZabbixRestart", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringZabbixRestart: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Starts external agents.
   *
   * `POST /monitoring/zabbix/start`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringZabbixStart", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringZabbixStart: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents.
   *
   * `POST /monitoring/zabbix/stop`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringZabbixStop", { body: { hosts: ["web-1"], timeout: 1 } });
   */
  postMonitoringZabbixStop: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Stops external agents and takes them off hosts.
   *
   * `POST /monitoring/zabbix/undeploy`, permission: depots:run.
   *
   * @example
   * await client.call("postMonitoringZabbixUndeploy", { body: { hosts: ["web-1"], name: "check", version: "1.0.0", timeout: 1 } });
   */
  postMonitoringZabbixUndeploy: {
    request: {
      body: {
        /** At least 1 item. */
        hosts: readonly string[];
        /** a depot. 1 to 255 characters. */
        name: string;
        /** three numbers: 1.0.0. */
        version: string;
        /**
         * seconds. At least 1.
         * @default 60
         */
        timeout?: number;
        /** also what policies use. */
        force?: boolean;
      };
    };
    message: {
      /** Name of the host. */
      host: string;
      /** Name of the depot. */
      depot: string;
      /** Version of the depot. */
      version: string;
      /** How it ended. unreachable: there is no way to the host. expired: no end was known at the deadline. */
      state: "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";
      /** Exit code of the command; absent if none ran to its end. */
      code?: number;
      /** Reason or output of the command; empty: nothing to report. */
      message: string;
      /** milliseconds since 1970. */
      startedMs: number;
      /** milliseconds since 1970. */
      endedMs: number;
    }[];
  };
  /**
   * Inserts or updates objects as MQL would; refused by what the caller may write.
   *
   * `POST /mxobject/actiontoclass`, permission: objects:read.
   *
   * @example
   * await client.call("postMxobjectActiontoclass", {
   *   body: {
   *     data: [{ class: "/matrix/visit", page: "/start", status: 200 }],
   *     ctype: "insert",
   *   },
   * });
   */
  postMxobjectActiontoclass: {
    request: {
      body: {
        /** An object or a list of objects. Each has the member `class`; an update with a full `id` may omit it. At least 1 item. */
        data: readonly Record<string, unknown>[];
        /** insert: new objects; update: changes of objects that exist. insert when absent. */
        ctype?: "insert" | "update";
      };
    };
    message: {
      /** Number of objects that were written. */
      count: number;
      /** Ids of the inserted objects, in the order of data. */
      ids?: string[];
    };
  };
  /**
   * Classes and objects as a file that can be imported.
   *
   * `GET /mxobject/export`, permission: objects:read.
   *
   * @example
   * const { body } = await client.download("getMxobjectExport", { query: { class: "/matrix/visit", filetype: "mql" } });
   */
  getMxobjectExport: {
    request: {
      query?: {
        /** A class path; with a slash at its end with its subclasses. The whole tenant when absent. */
        class?: string;
        /** With all subclasses. */
        recursive?: boolean;
        /** Objects of each class at most; 0: definitions only; -1 or absent: all. */
        limit?: number;
        /** mql (default) or xlsx. */
        filetype?: string;
        /** Definitions only. */
        template?: boolean;
        /** The same as template. */
        templdate?: boolean;
        /** Columns and edge types that are left out, separated by commas; with a column of a class of records also its _rawbytes. */
        ignorefields?: string;
        /** Class paths that are left out with their subclasses, separated by commas. */
        ignoreclass?: string;
        /** Defines the edge types as well. */
        relation_defined?: boolean;
        /** With the times of objects, their earlier states and removals, for an import with times=true; mql only. */
        times?: boolean;
      };
    };
    content: true;
  };
  /**
   * Takes an MQL script in, or a CSV file or workbook with a heading line into one class: checked as a whole, then written.
   *
   * `POST /mxobject/import`, permission: objects:write.
   *
   * @example
   * await client.call("postMxobjectImport", {
   *   body: {
   *     uploadfile: {
   *       name: "example.txt",
   *       content: "insert into /matrix/visit page='/about', status=200;\n",
   *     },
   *   },
   * });
   */
  postMxobjectImport: {
    request: {
      body: {
        /** false: answers when the import is on record, and it goes on by itself. */
        wait?: boolean;
        /** An ospace or a class path that takes the place of the ospace of all classes in the upload: with /second/copy, /matrix/host becomes /second/copy/host. */
        root?: string;
        /** Only checks, and tells what would be done. */
        plan?: boolean;
        /** Objects get their former times and earlier states back, as an export with times=true has them; else all are new writes. */
        times?: boolean;
        /** Path of the class that a CSV file, or a sheet of a workbook, with a heading line goes into. */
        class?: string;
        /** Columns by heading, as JSON; an empty name leaves a heading out. Other headings are taken for the column of their name or title, without regard to case, spaces, _ and -. */
        columns?: Record<string, string | null>;
        /** Character between the values of a CSV file, or tab; of , ; and tab the most frequent one of the heading line when absent. */
        delimiter?: string;
        /** Encoding of a script or CSV file, such as windows-1252, gbk or utf-16le; UTF-8 when absent. */
        encoding?: string;
        /** Name of the sheet of a workbook; the only one with rows when absent. */
        sheet?: string;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: {
      /** Of the object transfer:<id> that tells how far it is. */
      id: string;
      /** running, done or failed; planned of a plan, whose id is empty. */
      state: string;
      /** Statements. */
      total: number;
      /** Statements that are written. */
      done: number;
      /** Reason of a failure; empty otherwise. */
      message: string;
      /** How the headings of a file were understood. */
      columns?: {
        /** Heading in the file. */
        heading: string;
        /** Empty: left out. */
        column: string;
        /** Of the column; id, or relation of an edge type. */
        type?: string;
      }[];
      /** Of a CSV file. */
      delimiter?: string;
      /** Of a CSV file. */
      encoding?: string;
      /** Of a workbook. */
      sheet?: string;
      /** Of the plan of a file with a heading line: objects. */
      created?: number;
      /** Likewise. */
      updated?: number;
      /** Of such a plan: the first thousand rows. */
      changes?: {
        /** Number of the row in the file, from 1. */
        row: number;
        /** Absent: made up with the object. */
        id?: string;
        /** create or update. */
        action: string;
      }[];
    };
  };
  /**
   * Takes the classes and objects of a spreadsheet in, as an export makes it.
   *
   * `POST /mxobject/importclass`, permission: objects:write.
   *
   * @example
   * await client.call("postMxobjectImportclass", {
   *   body: {
   *     plan: true,
   *     uploadfile: { name: "example.txt", content: "the bytes of a workbook" },
   *   },
   * });
   */
  postMxobjectImportclass: {
    request: {
      body: {
        /** false: answers when the import is on record, and it goes on by itself. */
        wait?: boolean;
        /** An ospace or a class path that takes the place of the ospace of all classes in the upload: with /second/copy, /matrix/host becomes /second/copy/host. */
        root?: string;
        /** Only checks, and tells what would be done. */
        plan?: boolean;
        /** Only for scripts. */
        times?: boolean;
        /** A part with a file name; the part itself may have any name. */
        uploadfile: Upload;
      };
    };
    message: {
      /** Of the object transfer:<id> that tells how far it is. */
      id: string;
      /** running, done or failed; planned of a plan, whose id is empty. */
      state: string;
      /** Statements. */
      total: number;
      /** Statements that are written. */
      done: number;
      /** Reason of a failure; empty otherwise. */
      message: string;
      /** How the headings of a file were understood. */
      columns?: {
        /** Heading in the file. */
        heading: string;
        /** Empty: left out. */
        column: string;
        /** Of the column; id, or relation of an edge type. */
        type?: string;
      }[];
      /** Of a CSV file. */
      delimiter?: string;
      /** Of a CSV file. */
      encoding?: string;
      /** Of a workbook. */
      sheet?: string;
      /** Of the plan of a file with a heading line: objects. */
      created?: number;
      /** Likewise. */
      updated?: number;
      /** Of such a plan: the first thousand rows. */
      changes?: {
        /** Number of the row in the file, from 1. */
        row: number;
        /** Absent: made up with the object. */
        id?: string;
        /** create or update. */
        action: string;
      }[];
    };
  };
  /**
   * Run MQL; the answer is that of the last statement.
   *
   * `GET /mxobject/mql`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectMql", {
   *   query: { mql: "select * from /matrix/visit where status = 200 limit 10", meta: true },
   * });
   */
  getMxobjectMql: {
    request: {
      query: {
        /** Statements, separated by semicolons; absent if they are the body. At least 1 character. */
        mql: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Values for `?` placeholders: one list of values per execution, or the values of one execution. */
        values?: readonly unknown[];
        /** Position of a page of one SELECT with LIMIT: empty for the first, then `meta.cursor` of the answer before. */
        cursor?: string;
        /** Zone of the days, weeks, months and years in the statement, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
    };
    message: Record<string, unknown>[];
    cursor: true;
  };
  /**
   * Run MQL given as form, as JSON with values, or as the plain body.
   *
   * `POST /mxobject/mql`, permission: objects:read.
   *
   * @example
   * await client.call("postMxobjectMql", { body: "select * from /matrix/visit limit 10" });
   */
  postMxobjectMql: {
    request: {
      query?: {
        /** Statements, separated by semicolons; absent if they are the body. At least 1 character. */
        mql?: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Values for `?` placeholders: one list of values per execution, or the values of one execution. */
        values?: readonly unknown[];
        /** Position of a page of one SELECT with LIMIT: empty for the first, then `meta.cursor` of the answer before. */
        cursor?: string;
        /** Zone of the days, weeks, months and years in the statement, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
      /** The statements. */
      body: Content | {
        /** Statements, separated by semicolons; absent if they are the body. At least 1 character. */
        mql: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Values for `?` placeholders: one list of values per execution, or the values of one execution. */
        values?: readonly unknown[];
        /** Position of a page of one SELECT with LIMIT: empty for the first, then `meta.cursor` of the answer before. */
        cursor?: string;
        /** Zone of the days, weeks, months and years in the statement, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
    };
    message: Record<string, unknown>[];
    cursor: true;
  };
  /**
   * Rules, of one class when it is named.
   *
   * `GET /mxobject/rule`, permission: rules:read.
   *
   * @example
   * await client.call("getMxobjectRule", { query: { class: "/matrix/visit" } });
   */
  getMxobjectRule: {
    request: {
      query?: {
        /** Only rules whose records go to this class. */
        class?: string;
      };
    };
    message: {
      /** Configuration key of the rule. */
      key: string;
      /** Path of the class that its rows go to; empty where its body names classes. */
      class: string;
      /** Parser of the rule: text, json, csv or grok. */
      type: string;
      /** The rule's text. */
      value: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * Insert or replace a rule.
   *
   * `PUT /mxobject/rule`, permission: rules:write.
   *
   * @example
   * await client.call("putMxobjectRule", {
   *   body: {
   *     key: "/matrix/rules/visit",
   *     value: "--class=/matrix/visit\n--parser=csv\n--fields=page,status",
   *   },
   * });
   */
  putMxobjectRule: {
    request: {
      body: {
        /** Configuration key of the rule, such as /matrix/rules/access. 1 to 500 characters. */
        key: string;
        /** The rule's text: option lines. */
        value: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Remove a rule; a warning names the policies that need it.
   *
   * `DELETE /mxobject/rule`, permission: rules:write.
   *
   * @example
   * await client.call("deleteMxobjectRule", { query: { key: "/matrix/rules/visit" } });
   */
  deleteMxobjectRule: {
    request: {
      query: {
        /** Configuration key of the rule, such as /matrix/rules/access. 1 to 500 characters. */
        key: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Make the rule of a class and type; the message is its key.
   *
   * `POST /mxobject/rule/new`, permission: rules:write.
   *
   * @example
   * await client.call("postMxobjectRuleNew", { body: { class: "/matrix/visit", type: "csv", fields: ["page", "status"] } });
   */
  postMxobjectRuleNew: {
    request: {
      body: {
        /** Path of the class that the rows go to. At least 1 character. */
        class: string;
        /** Parser of the rule. */
        type: "text" | "json" | "csv" | "grok";
        /** Of grok: names of patterns, tried in this order, or where mapping names several of them, one line of all of them with blanks between; of csv and text: class fields. */
        fields?: readonly string[];
        /** Of grok: class field to the name of a pattern of fields, or to a name that one captures. */
        mapping?: Record<string, string>;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * What a rule, stored or given, or a grok pattern makes of sample records, or of the latest of a policy; nothing is stored.
   *
   * `POST /mxobject/rule/try`, permission: rules:write.
   *
   * @example
   * await client.call("postMxobjectRuleTry", { body: { key: "/matrix/rules/visit", lines: ["/start,200"] } });
   */
  postMxobjectRuleTry: {
    request: {
      body: {
        /** Configuration key of the rule, such as /matrix/rules/access. 1 to 500 characters. */
        key?: string;
        /** A rule's text; without it, the stored rule of the key is tried. */
        text?: string;
        /** A grok expression, tried alone, in place of a rule: what it captures is in fields. At least 1 character. */
        pattern?: string;
        /** Sample records; without them, those of the policy. */
        lines?: readonly string[];
        /** A policy whose latest raw records are the sample, as the controllers that run have them in memory; without key and text, its rule is tried. */
        policy?: string;
        /** How many records of the policy, 20 without it. 1 to 200. */
        last?: number;
        /** Where the records would come from. */
        host?: string;
        /** The file or policy they would come from. */
        source?: string;
        /** Named groups of a log policy's file match. */
        groups?: Record<string, string>;
      };
    };
    message: {
      /** Of the rule; empty where its body names classes, and of a pattern. */
      class: string;
      /** Each record of the sample. */
      records: {
        /** Of the sample, from 1. */
        line: number;
        /** The record of the policy. */
        raw?: {
          /** Text of the record. */
          text: string;
          /** Milliseconds since 1970. */
          time: number;
          /** Host that sent the record. */
          host: string;
          /** File or command of the record. */
          source: string;
        };
        /** Of pattern: what it captures of the record, by name. */
        fields?: Record<string, string | number>;
        /** Rows that the rule makes of the record. */
        rows: {
          /** Path of the class of the row. */
          class: string;
          /** Values by column. */
          values: Record<string, unknown>;
          /** Milliseconds since 1970, where --time gives the record a time of its own. */
          time?: number;
        }[];
        /** Why the record, or a row of it, does not fit. */
        errors: {
          /** The error in words. */
          message: string;
          /** Of the rule's text, where its body went wrong. */
          line?: number;
          /** Column of the rule's text, from 1. */
          column?: number;
        }[];
      }[];
      /** Messages of the body. */
      log: {
        /** Level of the message, such as info. */
        level: string;
        /** Text of the message. */
        msg: string;
      }[];
      /** Functions that bodies called and a trial does not carry out. */
      notCalled: string[];
      /** Mean time for a record, in milliseconds. */
      msPerRecord: number;
    };
  };
  /**
   * One class with its fields.
   *
   * `GET /mxobject/schema/class`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSchemaClass", { query: { class: "/matrix/visit" } });
   */
  getMxobjectSchemaClass: {
    request: {
      query: {
        /** Path of the class. At least 1 character. */
        class: string;
      };
    };
    message: {
      /** Number of the class; 1 for the root. */
      cid: number;
      /** Number of the nearest superclass that the reader may see; -1 if there is none. */
      pid: number;
      /** Path of the class. */
      name: string;
      /** Another name for people; empty: none. */
      alias: string;
      /** A short name for people; empty: none. */
      nickname: string;
      /** Remark for people; empty: none. */
      remedy: string;
      /** Paths of the direct subclasses. */
      child: string[];
      /** The same as child. */
      subclass: string[];
      /** All fields, including inherited ones. */
      fields: {
        /** Name of the field. */
        name: string;
        /** The same as name. */
        colname: string;
        /** Title for people; the name if there is none. */
        title: string;
        /** The same as title. */
        dispname: string;
        /** Type of the field as in MQL, without its parameters. */
        type: string;
        /** The same as type. */
        ftype: string;
        /** How values are indexed, such as `{"type":"string"}`. */
        loption: Record<string, unknown>;
        /** Element types of map, set and list; labels of enum; options of bucket; otherwise an empty list. */
        fparam: unknown;
        /** True: the field has an index. */
        isindex: boolean;
        /** True: the field is one of the keys. */
        iskey: boolean;
        /** Always false: relations are edges. */
        isrel: boolean;
        /** Always empty. */
        note: string;
        /** Always empty. */
        remedy: string;
        /** Type in which values are stored. */
        btype: string;
        /** Last change of the class that defines the field, in milliseconds since 1970. */
        mtime: number;
        /** Path of the class that defines the field. */
        class: string;
        /** Progress of an index that was added to a class with objects. */
        indexing?: {
          /** ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed. */
          state: string;
          /** Objects that are indexed already, during a backfill. */
          done?: number;
          /** Objects to index, during a backfill. */
          total?: number;
          /** Reason why the index will not become ready. */
          problem?: string;
        };
      }[];
      /** Names of the fields that make the id. */
      keys: string[];
      /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
      keymode: "manu" | "uuid" | "md5";
      /** The same as a number. 2: md5; 1: uuid; 0: manu. */
      keymethod: number;
      /** entity: objects that change; record: rows that are written once. */
      kind: "entity" | "record";
      /** 1: a search finds the words of its objects. 0 to 1. */
      autosearch: number;
      /** 1: earlier states of its objects are kept. 0 to 1. */
      version: number;
      /** Retention of versions that a later one superseded, as ttl. */
      versionttl: number;
      /** Zone in which statements about the class count days, weeks, months and years; empty: UTC. */
      time_zone: string;
      /** Hints for the store, as the client gave them; without effect. */
      loption: Record<string, unknown>;
      /** milliseconds since 1970. */
      mtime: number;
      /** Revision of the class's own definition, without what it inherits. */
      revision: string;
      /** Always empty. */
      tags: string[];
      /** Seconds; -1: for ever. */
      ttl: number;
      /** Always empty. */
      vtimebase: string;
      /** Progress of an index that was added to a class with objects. */
      indexing?: {
        /** ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed. */
        state: string;
        /** Objects that are indexed already, during a backfill. */
        done?: number;
        /** Objects to index, during a backfill. */
        total?: number;
        /** Reason why the index will not become ready. */
        problem?: string;
      };
    };
  };
  /**
   * Makes a class, or adds to one that is there what it lacks: columns, keys, indexes, options.
   *
   * `POST /mxobject/schema/class`, permission: objects:write.
   *
   * @example
   * await client.call("postMxobjectSchemaClass", {
   *   body: {
   *     class: "/matrix/visit",
   *     fields: [{ name: "page", type: "varchar", iskey: true }, { name: "status", type: "int", isindex: true }],
   *     autosearch: true,
   *   },
   * });
   */
  postMxobjectSchemaClass: {
    request: {
      body: {
        /** Path of the class. */
        class?: string;
        /** The same as class. */
        name?: string;
        /** Fields of the class; a bare name means a field that exists. */
        fields?: readonly ({
          /** Name of the field. At least 1 character. */
          name?: string;
          /** The same as name. At least 1 character. */
          colname?: string;
          /** Type as in MQL: `varchar`, `set<varchar>`, …. */
          type?: string;
          /** The same as type. */
          ftype?: string;
          /** Title for people. */
          title?: string;
          /** The same as title. */
          dispname?: string;
          /** True: the field gets an index. */
          isindex?: boolean;
          /** True: the field is one of the keys. */
          iskey?: boolean;
          /** Element types of map, set and list; labels of enum; options of bucket. */
          fparam?: Record<string, unknown> | readonly string[];
        } | string)[];
        /** Names of the fields that make the id. */
        keys?: readonly string[];
        /** Names of the fields that get an index. */
        indexes?: readonly string[];
        /** Another name for people. */
        alias?: string;
        /** A short name for people. */
        nickname?: string;
        /** Remark for people. */
        remedy?: string;
        /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
        keymode?: "manu" | "uuid" | "md5";
        /** entity: objects that change; record: rows that are written once. For a new class only. */
        kind?: "entity" | "record";
        /** True: a search finds the words of its objects. */
        autosearch?: boolean;
        /** True: earlier states of its objects are kept. */
        version?: boolean;
        /** Retention of versions that a later one superseded, as ttl. */
        versionttl?: string;
        /** Zone in which statements about the class count days and weeks, such as Europe/Berlin; empty: the superclass's zone. */
        time_zone?: string;
        /** Time to live: seconds, or a number and a unit as in `30 day`; -1: for ever. */
        ttl?: string;
        /** Hints for the store, which are kept; without effect. */
        loption?: Record<string, unknown>;
        /** The class as one member, such as the JSON text in a form. */
        data?: {
          /** Path of the class. */
          class?: string;
          /** The same as class. */
          name?: string;
          /** Fields of the class; a bare name means a field that exists. */
          fields?: readonly ({
            /** Name of the field. At least 1 character. */
            name?: string;
            /** The same as name. At least 1 character. */
            colname?: string;
            /** Type as in MQL: `varchar`, `set<varchar>`, …. */
            type?: string;
            /** The same as type. */
            ftype?: string;
            /** Title for people. */
            title?: string;
            /** The same as title. */
            dispname?: string;
            /** True: the field gets an index. */
            isindex?: boolean;
            /** True: the field is one of the keys. */
            iskey?: boolean;
            /** Element types of map, set and list; labels of enum; options of bucket. */
            fparam?: Record<string, unknown> | readonly string[];
          } | string)[];
          /** Names of the fields that make the id. */
          keys?: readonly string[];
          /** Names of the fields that get an index. */
          indexes?: readonly string[];
          /** Another name for people. */
          alias?: string;
          /** A short name for people. */
          nickname?: string;
          /** Remark for people. */
          remedy?: string;
          /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
          keymode?: "manu" | "uuid" | "md5";
          /** entity: objects that change; record: rows that are written once. For a new class only. */
          kind?: "entity" | "record";
          /** True: a search finds the words of its objects. */
          autosearch?: boolean;
          /** True: earlier states of its objects are kept. */
          version?: boolean;
          /** Retention of versions that a later one superseded, as ttl. */
          versionttl?: string;
          /** Zone in which statements about the class count days and weeks, such as Europe/Berlin; empty: the superclass's zone. */
          time_zone?: string;
          /** Time to live: seconds, or a number and a unit as in `30 day`; -1: for ever. */
          ttl?: string;
          /** Hints for the store, which are kept; without effect. */
          loption?: Record<string, unknown>;
        };
      };
    };
    message: {
      /** Number of the class; 1 for the root. */
      cid: number;
      /** Number of the nearest superclass that the reader may see; -1 if there is none. */
      pid: number;
      /** Path of the class. */
      name: string;
      /** Another name for people; empty: none. */
      alias: string;
      /** A short name for people; empty: none. */
      nickname: string;
      /** Remark for people; empty: none. */
      remedy: string;
      /** Paths of the direct subclasses. */
      child: string[];
      /** The same as child. */
      subclass: string[];
      /** All fields, including inherited ones. */
      fields: {
        /** Name of the field. */
        name: string;
        /** The same as name. */
        colname: string;
        /** Title for people; the name if there is none. */
        title: string;
        /** The same as title. */
        dispname: string;
        /** Type of the field as in MQL, without its parameters. */
        type: string;
        /** The same as type. */
        ftype: string;
        /** How values are indexed, such as `{"type":"string"}`. */
        loption: Record<string, unknown>;
        /** Element types of map, set and list; labels of enum; options of bucket; otherwise an empty list. */
        fparam: unknown;
        /** True: the field has an index. */
        isindex: boolean;
        /** True: the field is one of the keys. */
        iskey: boolean;
        /** Always false: relations are edges. */
        isrel: boolean;
        /** Always empty. */
        note: string;
        /** Always empty. */
        remedy: string;
        /** Type in which values are stored. */
        btype: string;
        /** Last change of the class that defines the field, in milliseconds since 1970. */
        mtime: number;
        /** Path of the class that defines the field. */
        class: string;
        /** Progress of an index that was added to a class with objects. */
        indexing?: {
          /** ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed. */
          state: string;
          /** Objects that are indexed already, during a backfill. */
          done?: number;
          /** Objects to index, during a backfill. */
          total?: number;
          /** Reason why the index will not become ready. */
          problem?: string;
        };
      }[];
      /** Names of the fields that make the id. */
      keys: string[];
      /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
      keymode: "manu" | "uuid" | "md5";
      /** The same as a number. 2: md5; 1: uuid; 0: manu. */
      keymethod: number;
      /** entity: objects that change; record: rows that are written once. */
      kind: "entity" | "record";
      /** 1: a search finds the words of its objects. 0 to 1. */
      autosearch: number;
      /** 1: earlier states of its objects are kept. 0 to 1. */
      version: number;
      /** Retention of versions that a later one superseded, as ttl. */
      versionttl: number;
      /** Zone in which statements about the class count days, weeks, months and years; empty: UTC. */
      time_zone: string;
      /** Hints for the store, as the client gave them; without effect. */
      loption: Record<string, unknown>;
      /** milliseconds since 1970. */
      mtime: number;
      /** Revision of the class's own definition, without what it inherits. */
      revision: string;
      /** Always empty. */
      tags: string[];
      /** Seconds; -1: for ever. */
      ttl: number;
      /** Always empty. */
      vtimebase: string;
      /** Progress of an index that was added to a class with objects. */
      indexing?: {
        /** ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed. */
        state: string;
        /** Objects that are indexed already, during a backfill. */
        done?: number;
        /** Objects to index, during a backfill. */
        total?: number;
        /** Reason why the index will not become ready. */
        problem?: string;
      };
    };
    revised: true;
  };
  /**
   * Drops a class, by number or path, that has neither objects nor classes below it.
   *
   * `DELETE /mxobject/schema/class`, permission: objects:write.
   *
   * @example
   * await client.call("deleteMxobjectSchemaClass", { query: { cid: "/matrix/visit" } });
   */
  deleteMxobjectSchemaClass: {
    request: {
      query: {
        /** Number of the class. At least 1 character. */
        cid: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Fields of a class, inherited ones too.
   *
   * `GET /mxobject/schema/class/fields`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSchemaClassFields", { query: { id: "/matrix/visit" } });
   */
  getMxobjectSchemaClassFields: {
    request: {
      query: {
        /** Number or path of the class. At least 1 character. */
        id: string;
      };
    };
    message: {
      /** Name of the field. */
      name: string;
      /** The same as name. */
      colname: string;
      /** Title for people; the name if there is none. */
      title: string;
      /** The same as title. */
      dispname: string;
      /** Type of the field as in MQL, without its parameters. */
      type: string;
      /** The same as type. */
      ftype: string;
      /** How values are indexed, such as `{"type":"string"}`. */
      loption: Record<string, unknown>;
      /** Element types of map, set and list; labels of enum; options of bucket; otherwise an empty list. */
      fparam: unknown;
      /** True: the field has an index. */
      isindex: boolean;
      /** True: the field is one of the keys. */
      iskey: boolean;
      /** Always false: relations are edges. */
      isrel: boolean;
      /** Always empty. */
      note: string;
      /** Always empty. */
      remedy: string;
      /** Type in which values are stored. */
      btype: string;
      /** Last change of the class that defines the field, in milliseconds since 1970. */
      mtime: number;
      /** Path of the class that defines the field. */
      class: string;
      /** Progress of an index that was added to a class with objects. */
      indexing?: {
        /** ready: queries use the index. write-only, backfill: it is being added. retiring: it is being removed. */
        state: string;
        /** Objects that are indexed already, during a backfill. */
        done?: number;
        /** Objects to index, during a backfill. */
        total?: number;
        /** Reason why the index will not become ready. */
        problem?: string;
      };
    }[];
  };
  /**
   * Classes below one named by number; with the class itself when named by path; the root without a name.
   *
   * `GET /mxobject/schema/class/list`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSchemaClassList", { query: { id: "/matrix" } });
   */
  getMxobjectSchemaClassList: {
    request: {
      query?: {
        /** Number or path of the class. Absent or -1: the root. */
        id?: string;
      };
    };
    message: {
      /** Number of the class; 1 for the root. */
      cid: number;
      /** Number of the nearest superclass that the reader may see; -1 if there is none. */
      pid: number;
      /** Path of the class. */
      name: string;
      /** Another name for people; empty: none. */
      alias: string;
      /** A short name for people; empty: none. */
      nickname: string;
      /** Remark for people; empty: none. */
      remedy: string;
      /** Paths of the direct subclasses. */
      child: string[];
      /** The same as child. */
      subclass: string[];
      /** Names of all fields, including inherited ones. */
      fields: string[];
      /** Names of the fields that make the id. */
      keys: string[];
      /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
      keymode: "manu" | "uuid" | "md5";
      /** The same as a number. 2: md5; 1: uuid; 0: manu. */
      keymethod: number;
      /** entity: objects that change; record: rows that are written once. */
      kind: "entity" | "record";
      /** 1: a search finds the words of its objects. 0 to 1. */
      autosearch: number;
      /** 1: earlier states of its objects are kept. 0 to 1. */
      version: number;
      /** Retention of versions that a later one superseded, as ttl. */
      versionttl: number;
      /** Zone in which statements about the class count days, weeks, months and years; empty: UTC. */
      time_zone: string;
      /** Hints for the store, as the client gave them; without effect. */
      loption: Record<string, unknown>;
      /** milliseconds since 1970. */
      mtime: number;
      /** Revision of the class's own definition, without what it inherits. */
      revision: string;
      /** Always empty. */
      tags: string[];
      /** Seconds; -1: for ever. */
      ttl: number;
      /** Always empty. */
      vtimebase: string;
    }[];
  };
  /**
   * A class, by number or path, and all classes below it; all classes without a name.
   *
   * `GET /mxobject/schema/class/tree`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSchemaClassTree", { query: { id: "/matrix" } });
   */
  getMxobjectSchemaClassTree: {
    request: {
      query?: {
        /** Number or path of the class. Absent or -1: the root. */
        id?: string;
      };
    };
    message: {
      /** Number of the class; 1 for the root. */
      cid: number;
      /** Number of the nearest superclass that the reader may see; -1 if there is none. */
      pid: number;
      /** Path of the class. */
      name: string;
      /** Another name for people; empty: none. */
      alias: string;
      /** A short name for people; empty: none. */
      nickname: string;
      /** Remark for people; empty: none. */
      remedy: string;
      /** Paths of the direct subclasses. */
      child: string[];
      /** The same as child. */
      subclass: string[];
      /** Names of all fields, including inherited ones. */
      fields: string[];
      /** Names of the fields that make the id. */
      keys: string[];
      /** How ids are made. md5: digest of the keys; uuid: random; manu: given by the client. */
      keymode: "manu" | "uuid" | "md5";
      /** The same as a number. 2: md5; 1: uuid; 0: manu. */
      keymethod: number;
      /** entity: objects that change; record: rows that are written once. */
      kind: "entity" | "record";
      /** 1: a search finds the words of its objects. 0 to 1. */
      autosearch: number;
      /** 1: earlier states of its objects are kept. 0 to 1. */
      version: number;
      /** Retention of versions that a later one superseded, as ttl. */
      versionttl: number;
      /** Zone in which statements about the class count days, weeks, months and years; empty: UTC. */
      time_zone: string;
      /** Hints for the store, as the client gave them; without effect. */
      loption: Record<string, unknown>;
      /** milliseconds since 1970. */
      mtime: number;
      /** Revision of the class's own definition, without what it inherits. */
      revision: string;
      /** Always empty. */
      tags: string[];
      /** Seconds; -1: for ever. */
      ttl: number;
      /** Always empty. */
      vtimebase: string;
    }[];
  };
  /**
   * Search objects by words, fields and times.
   *
   * `GET /mxobject/search`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSearch", { query: { cond: "#/matrix/visit: start" } });
   */
  getMxobjectSearch: {
    request: {
      query: {
        /** The search; absent if it is the body. At least 1 character. */
        cond: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Zone of the days, weeks, months and years in the search, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
    };
    message: Record<string, unknown>[];
  };
  /**
   * Search by a condition given as form, as JSON or as the plain body.
   *
   * `POST /mxobject/search`, permission: objects:read.
   *
   * @example
   * await client.call("postMxobjectSearch", { body: "#/matrix/visit: start" });
   */
  postMxobjectSearch: {
    request: {
      query?: {
        /** The search; absent if it is the body. At least 1 character. */
        cond?: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Zone of the days, weeks, months and years in the search, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
      /** The condition. */
      body: Content | {
        /** The search; absent if it is the body. At least 1 character. */
        cond: string;
        /** True: also answers the columns and classes of the rows, as meta. */
        meta?: boolean;
        /** Zone of the days, weeks, months and years in the search, such as Europe/Berlin; absent: the user's zone, otherwise that of the class. */
        time_zone?: string;
      };
    };
    message: Record<string, unknown>[];
  };
  /**
   * The table field, ftype or class, whole, as the JSON text of a list.
   *
   * `GET /mxobject/system/schema/{table}`, permission: objects:read.
   *
   * @example
   * await client.call("getMxobjectSystemSchemaByTable", { path: { table: "class" } });
   */
  getMxobjectSystemSchemaByTable: {
    request: {
      path: {
        /** Name of the table. */
        table: string;
      };
    };
    message: string;
  };
  /**
   * The table field, ftype or class, whole, as the JSON text of a list.
   *
   * `POST /mxobject/system/schema/{table}`, permission: objects:read.
   *
   * @example
   * await client.call("postMxobjectSystemSchemaByTable", { path: { table: "class" } });
   */
  postMxobjectSystemSchemaByTable: {
    request: {
      path: {
        /** Name of the table. */
        table: string;
      };
    };
    message: string;
  };
  /**
   * Triggers of a class.
   *
   * `GET /mxobject/trigger`, permission: triggers:read.
   *
   * @example
   * await client.call("getMxobjectTrigger", { query: { class: "/matrix/visit" } });
   */
  getMxobjectTrigger: {
    request: {
      query: {
        /** Path of the class. At least 1 character. */
        class: string;
      };
    };
    message: {
      /** Path of the class. */
      class: string;
      /** Of the latest change, in milliseconds. */
      vtime: number;
      /** Script of each trigger by name. */
      script: Record<string, string>;
      /** Attributes of each trigger by name. */
      attr: Record<string, string>;
      /** Revision of each trigger by name. */
      revision: Record<string, string>;
    }[];
  };
  /**
   * Insert or replace a trigger; its texts run with the rights of who sent it.
   *
   * `PUT /mxobject/trigger`, permission: triggers:write.
   *
   * @example
   * await client.call("putMxobjectTrigger", {
   *   body: { class: "/matrix/visit", name: "count", script: "local page = OBJECT.page" },
   * });
   */
  putMxobjectTrigger: {
    request: {
      body: {
        /** Path of the class; its subclasses have the trigger as well. At least 1 character. */
        class: string;
        /** Letters, digits, `_`, `-` and `.`. At least 1 character. */
        name: string;
        /** Lua 5.1, or JavaScript where `attr.language` or the first line says so. */
        script: string;
        /** Texts: `disable`, `before`, `level`, `language`. */
        attr?: {
          /** True: the trigger does not run. */
          disable?: string | boolean;
          /** True or absent: the trigger runs before the write and may change or refuse it; false: after it. */
          before?: string | boolean;
          /** Order among the triggers of a write, ascending; 0 when absent. */
          level?: string | number;
          /** Language of the script; Lua when absent, unless its first line says otherwise. */
          language?: string;
        };
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Remove a trigger.
   *
   * `DELETE /mxobject/trigger`, permission: triggers:write.
   *
   * @example
   * await client.call("deleteMxobjectTrigger", { query: { class: "/matrix/visit", name: "count" } });
   */
  deleteMxobjectTrigger: {
    request: {
      query: {
        /** Path of the class. At least 1 character. */
        class: string;
        /** Letters, digits, `_`, `-` and `.`. At least 1 character. */
        name: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Grok patterns of users.
   *
   * `GET /pattern`, permission: rules:read.
   *
   * @example
   * await client.call("getPattern");
   */
  getPattern: {
    request: Record<string, never>;
    message: {
      /** Name of the pattern. */
      name: string;
      /** The regular expression. */
      pattern: string;
      /** Sample that the pattern was tried on; empty: none. */
      eg: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    }[];
  };
  /**
   * One grok pattern, also of the standard set.
   *
   * `GET /pattern/{name}`, permission: rules:read.
   *
   * @example
   * await client.call("getPatternByName", { path: { name: "VISITOR" } });
   */
  getPatternByName: {
    request: {
      path: {
        /** Name of the pattern. */
        name: string;
      };
    };
    message: {
      /** Name of the pattern. */
      name: string;
      /** The regular expression. */
      pattern: string;
      /** Sample that the pattern was tried on; empty: none. */
      eg: string;
      /** Changes with every change of the definition. If-Match of a change checks it. */
      revision: string;
    };
  };
  /**
   * Insert or replace a grok pattern, tried on its sample: meta tells what it captures, warnings that it does not match.
   *
   * `POST /pattern/{name}`, permission: rules:write.
   *
   * @example
   * await client.call("postPatternByName", {
   *   path: { name: "VISITOR" },
   *   body: { pattern: "%{IP:client} %{WORD:page}", eg: "192.0.2.1 start" },
   * });
   */
  postPatternByName: {
    request: {
      path: {
        /** Name of the pattern. */
        name: string;
      };
      body: {
        /** A regular expression that names others as %{NAME} or %{NAME:field}. At least 1 character. */
        pattern: string;
        /** A sample that the pattern is tried on; where it does not match, warnings say so. */
        eg?: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Remove a grok pattern that no other uses.
   *
   * `DELETE /pattern/{name}`, permission: rules:write.
   *
   * @example
   * await client.call("deletePatternByName", { path: { name: "VISITOR" } });
   */
  deletePatternByName: {
    request: {
      path: {
        /** Name of the pattern. */
        name: string;
      };
    };
    message: string;
    revised: true;
  };
  /**
   * Functions that scripts of the kind rule find.
   *
   * `GET /rule/funcs`, permission: rules:read.
   *
   * @example
   * await client.call("getRuleFuncs");
   */
  getRuleFuncs: {
    request: Record<string, never>;
    message: {
      /** As it is called: <object>.<function>. */
      name: string;
      /** Object that the function belongs to. */
      object: string;
      /** The work of the function, in a sentence. */
      summary: string;
      /** Arguments, in their order. */
      parameters: {
        /** Name of the argument. */
        name: string;
        /** Type of the argument. */
        type: string;
        /** Meaning of the argument. */
        title: string;
        /** True: the argument may be left out. */
        optional: boolean;
        /** It takes all arguments from here on. */
        list: boolean;
      }[];
      /** The result, in words; empty: none. */
      returns: string;
      /** A call of the function. */
      example: string;
      /** The language whose scripts find it; without it, each. */
      language?: string;
    }[];
  };
  /**
   * Run a script file; the answer is what it puts into OUTPUT.
   *
   * `GET /script/exec/js`, permission: scripts:read.
   *
   * @example
   * await client.call("getScriptExecJs", { query: { filepath: "greet.js", input: "world" } });
   */
  getScriptExecJs: {
    request: {
      query?: {
        /** File below /script of the file space. At most 4096 characters. */
        filepath?: string;
        /** What the script finds as INPUT: text, or any JSON in a JSON body. */
        input?: unknown;
        /** Whether the body is the path of a file. */
        isfile?: boolean;
        /** Answer the bare result, without an envelope. */
        rawdata?: boolean;
        /** The file is in the system's file space only, for administrators. Otherwise in the users' space first, then in the system's. */
        issys?: boolean;
      };
    };
    message: unknown;
  };
  /**
   * Run a script file, or a script given as the plain body; the answer is what it puts into OUTPUT.
   *
   * `POST /script/exec/js`, permission: scripts:read.
   *
   * @example
   * await client.call("postScriptExecJs", { body: "OUTPUT = 2 * 21" });
   */
  postScriptExecJs: {
    request: {
      query?: {
        /** File below /script of the file space. At most 4096 characters. */
        filepath?: string;
        /** What the script finds as INPUT: text, or any JSON in a JSON body. */
        input?: unknown;
        /** Whether the body is the path of a file. */
        isfile?: boolean;
        /** Answer the bare result, without an envelope. */
        rawdata?: boolean;
        /** The file is in the system's file space only, for administrators. Otherwise in the users' space first, then in the system's. */
        issys?: boolean;
      };
      /** The script. */
      body?: Content | {
        /** File below /script of the file space. At most 4096 characters. */
        filepath?: string;
        /** What the script finds as INPUT: text, or any JSON in a JSON body. */
        input?: unknown;
        /** Whether the body is the path of a file. */
        isfile?: boolean;
        /** Answer the bare result, without an envelope. */
        rawdata?: boolean;
        /** The file is in the system's file space only, for administrators. Otherwise in the users' space first, then in the system's. */
        issys?: boolean;
      };
    };
    message: unknown;
  };
  /**
   * The bytes of a file of either space for browsers, by the type of its name.
   *
   * `GET /static/{path}`, permission: files:read.
   *
   * @example
   * const { body } = await client.download("getStaticByPath", { path: { path: "script/greet.js" } });
   */
  getStaticByPath: {
    request: {
      path: {
        /** The rest of the path. A slash in it may also be sent as %2F. */
        path: string;
      };
      query?: {
        /** In the system's space only, for administrators. Otherwise in the users' space first, then in the system's. */
        issys?: boolean;
      };
    };
    content: true;
  };
  /**
   * The tree of tags of a domain, or what lies below one of them; empty when there is none.
   *
   * `GET /tagdir/{domain}`, permission: tags:read.
   *
   * @example
   * await client.call("getTagdirByDomain", { path: { domain: "places" } });
   */
  getTagdirByDomain: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      query?: {
        /** Only what lies below this tag. */
        tagpath?: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: {
      /** Last part of the path. */
      name: string;
      /** By name; nodes of this same form, which have `path` and `domain` besides. */
      nodes: Record<string, unknown>[];
    };
  };
  /**
   * Move or rename a tag with all below it, also on all that bears it: topath is its whole new path.
   *
   * `PUT /tagdir/{domain}`, permission: tags:write.
   *
   * @example
   * await client.call("putTagdirByDomain", {
   *   path: { domain: "places" },
   *   body: { tagpath: "europe/bergen", topath: "europe/oslo" },
   * });
   */
  putTagdirByDomain: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** Whole path of a tag, as in `a/b/c`. */
        tagpath: string;
        /** The whole new path. */
        topath: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Add a tag, with all above it.
   *
   * `POST /tagdir/{domain}`, permission: tags:write.
   *
   * @example
   * await client.call("postTagdirByDomain", { path: { domain: "places" }, body: { tagpath: "europe/oslo" } });
   */
  postTagdirByDomain: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** Whole path of a tag, as in `a/b/c`. */
        tagpath: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Remove a tag with all below it, also from all that bears it and no other domain shows.
   *
   * `DELETE /tagdir/{domain}`, permission: tags:write.
   *
   * @example
   * await client.call("deleteTagdirByDomain", { path: { domain: "places" }, query: { tagpath: "europe/oslo" } });
   */
  deleteTagdirByDomain: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      query: {
        /** Whole path of a tag, as in `a/b/c`. */
        tagpath: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Take tags from objects by their ids.
   *
   * `PUT /tagdir/{domain}/deletetags`, permission: tags:write.
   *
   * @example
   * await client.call("putTagdirByDomainDeletetags", {
   *   path: { domain: "places" },
   *   body: { tag: ["europe/oslo"], id: ["hostinfo:web-1"] },
   * });
   */
  putTagdirByDomainDeletetags: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** At least 1 item. */
        tag: readonly string[];
        /** At least 1 item. */
        id: readonly string[];
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Whether nothing bears a tag or one below it.
   *
   * `GET /tagdir/{domain}/nodata`, permission: tags:read.
   *
   * @example
   * await client.call("getTagdirByDomainNodata", { path: { domain: "places" }, query: { tagpath: "europe/oslo" } });
   */
  getTagdirByDomainNodata: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      query: {
        /** Whole path of a tag, as in `a/b/c`. */
        tagpath: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: boolean;
  };
  /**
   * Move or rename a tag with all below it, also on all that bears it: topath is its whole new path.
   *
   * `PUT /tagdir/{domain}/rename`, permission: tags:write.
   *
   * @example
   * await client.call("putTagdirByDomainRename", {
   *   path: { domain: "places" },
   *   body: { tagpath: "europe/oslo", topath: "europe/bergen" },
   * });
   */
  putTagdirByDomainRename: {
    request: {
      path: {
        /** Tree of tags; it need not be made. */
        domain: string;
      };
      body: {
        /** Whole path of a tag, as in `a/b/c`. */
        tagpath: string;
        /** The whole new path. */
        topath: string;
        /** Without effect: all users of the tenant share its trees. */
        system?: boolean;
      };
    };
    message: string;
  };
  /**
   * Functions that scripts of the kind trigger find.
   *
   * `GET /trigger/funcs`, permission: scripts:read.
   *
   * @example
   * await client.call("getTriggerFuncs");
   */
  getTriggerFuncs: {
    request: Record<string, never>;
    message: {
      /** As it is called: <object>.<function>. */
      name: string;
      /** Object that the function belongs to. */
      object: string;
      /** The work of the function, in a sentence. */
      summary: string;
      /** Arguments, in their order. */
      parameters: {
        /** Name of the argument. */
        name: string;
        /** Type of the argument. */
        type: string;
        /** Meaning of the argument. */
        title: string;
        /** True: the argument may be left out. */
        optional: boolean;
        /** It takes all arguments from here on. */
        list: boolean;
      }[];
      /** The result, in words; empty: none. */
      returns: string;
      /** A call of the function. */
      example: string;
      /** The language whose scripts find it; without it, each. */
      language?: string;
    }[];
  };
  /**
   * Page of one's own sign-in: password, sessions, second factor, account at the OpenID provider.
   *
   * `GET /user/account`, permission: none.
   *
   * @example
   * const { body } = await client.download("getUserAccount");
   */
  getUserAccount: {
    request: {
      query?: {
        /** Code of the error that the page explains. At most 50 characters. */
        error?: string;
      };
    };
    content: true;
  };
  /**
   * Changes one's own password from its page.
   *
   * `POST /user/account/password`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserAccountPassword", {
   *   body: {
   *     password: "correct horse battery staple",
   *     newpassword: "another long pass phrase",
   *   },
   * });
   */
  postUserAccountPassword: {
    request: {
      body: {
        /** The present one. 1 to 4096 characters. */
        password: string;
        /** The new password. 1 to 4096 characters. */
        newpassword: string;
      };
    };
    content: true;
  };
  /**
   * Page that shows a new second factor to an authenticator, once.
   *
   * `POST /user/account/secondfactor`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserAccountSecondfactor", { body: { password: "correct horse battery staple" } });
   */
  postUserAccountSecondfactor: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    content: true;
  };
  /**
   * Page that turns one's second factor on and shows the recovery codes, once.
   *
   * `POST /user/account/secondfactor/confirm`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserAccountSecondfactorConfirm", { body: { code: "492039" } });
   */
  postUserAccountSecondfactorConfirm: {
    request: {
      body: {
        /** One-time password that the authenticator shows. 1 to 64 characters. */
        code: string;
      };
    };
    content: true;
  };
  /**
   * Turns one's second factor off from its page.
   *
   * `POST /user/account/secondfactor/remove`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserAccountSecondfactorRemove", { body: { password: "correct horse battery staple" } });
   */
  postUserAccountSecondfactorRemove: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    content: true;
  };
  /**
   * Ends one of one's sessions, or all others, from their page.
   *
   * `POST /user/account/sessions`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserAccountSessions", { body: { password: "correct horse battery staple" } });
   */
  postUserAccountSessions: {
    request: {
      body: {
        /** One of one's sessions; absent or empty: all but this one. At most 64 characters. */
        id?: string;
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    content: true;
  };
  /**
   * Signs in and goes on to a page of this site.
   *
   * `POST /user/goauth`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserGoauth", {
   *   body: {
   *     company: "matrix",
   *     username: "ana",
   *     password: "correct horse battery staple",
   *     redirect: "/static/start.html",
   *   },
   * });
   */
  postUserGoauth: {
    request: {
      body: {
        /** Name of the tenant. Absent: the installation's only one. At most 48 characters. */
        company?: string;
        /** Name of the user. 1 to 200 characters. */
        username: string;
        /** Password of the user. 1 to 4096 characters. */
        password: string;
        /** One-time password or recovery code, for a user with a second factor. At most 64 characters. */
        code?: string;
        /** True: a session that outlives the browser. */
        remember?: boolean;
        /** Path of a page of this site to go to; the user's start page when absent. At most 1000 characters. */
        redirect?: string;
      };
    };
    content: true;
  };
  /**
   * Sign-in page.
   *
   * `GET /user/login`, permission: none.
   *
   * @example
   * const { body } = await client.download("getUserLogin");
   */
  getUserLogin: {
    request: {
      query?: {
        /** Code of the error that the page explains. At most 50 characters. */
        error?: string;
      };
    };
    content: true;
  };
  /**
   * Signs in by HTML form and goes to the start page.
   *
   * `POST /user/login`, permission: none.
   *
   * @example
   * const { body } = await client.download("postUserLogin", {
   *   body: { company: "matrix", username: "ana", password: "correct horse battery staple" },
   * });
   */
  postUserLogin: {
    request: {
      body: {
        /** Name of the tenant. Absent: the installation's only one. At most 48 characters. */
        company?: string;
        /** Name of the user. 1 to 200 characters. */
        username?: string;
        /** The same as username. 1 to 200 characters. */
        user_name?: string;
        /** Password of the user. 1 to 4096 characters. */
        password?: string;
        /** One-time password or recovery code, for a user with a second factor. At most 64 characters. */
        code?: string;
        /** Of the page that asks for the code: stands for name and password. 1 to 8000 characters. */
        ticket?: string;
        /** True: a session that outlives the browser. */
        remember?: boolean;
      };
    };
    content: true;
  };
  /**
   * Ends the session of this call.
   *
   * `GET /user/logout`, permission: none.
   *
   * @example
   * await client.call("getUserLogout");
   */
  getUserLogout: {
    request: {
      query?: {
        /** Name of the user; without effect. At most 200 characters. */
        name?: string;
      };
    };
    message: undefined;
  };
  /**
   * Ends the session of this call.
   *
   * `GET /user/logout/{name}`, permission: none.
   *
   * @example
   * await client.call("getUserLogoutByName", { path: { name: "ana" } });
   */
  getUserLogoutByName: {
    request: {
      path: {
        /** Name of the user; without effect. At most 4096 characters. */
        name: string;
      };
    };
    message: undefined;
  };
  /**
   * Sends the browser to the OpenID provider to sign in there.
   *
   * `GET /user/openid`, permission: none.
   *
   * @example
   * await client.call("getUserOpenid");
   */
  getUserOpenid: {
    request: {
      query?: {
        /** Path of a page of this site to go to. At most 1000 characters. */
        redirect?: string;
        /** A session that outlives the browser. */
        remember?: boolean;
      };
    };
    message: undefined;
  };
  /**
   * One's own account at the OpenID provider.
   *
   * `GET /user/openid/account`, permission: none.
   *
   * @example
   * await client.call("getUserOpenidAccount");
   */
  getUserOpenidAccount: {
    request: Record<string, never>;
    message: {
      /** Empty: no account is linked. */
      issuer: string;
      /** Names the account at the provider. */
      subject: string;
    };
  };
  /**
   * Where the OpenID provider sends the browser back; signs in, or links an account.
   *
   * `GET /user/openid/callback`, permission: none.
   *
   * @example
   * const { body } = await client.download("getUserOpenidCallback", { query: { code: "SplxlOBeZQQYbYS6WxSbIA", state: "af0ifjsldkj" } });
   */
  getUserOpenidCallback: {
    request: {
      query?: {
        /** Code that the provider gives for the account. */
        code?: string;
        /** Value that the sign-in began with. */
        state?: string;
        /** The provider's own address. */
        iss?: string;
        /** Why the provider refuses. */
        error?: string;
        /** Of some providers; without effect. */
        session_state?: string;
        /** Without effect. */
        error_description?: string;
      };
    };
    content: true;
  };
  /**
   * Link one's own account at the OpenID provider; takes the password, and goes on there.
   *
   * `POST /user/openid/link`, permission: none.
   *
   * @example
   * await client.call("postUserOpenidLink", { body: { password: "correct horse battery staple" } });
   */
  postUserOpenidLink: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    message: string;
    content: true;
  };
  /**
   * Unlink one's own account at the OpenID provider; takes the password, and ends one's sessions.
   *
   * `POST /user/openid/unlink`, permission: none.
   *
   * @example
   * await client.call("postUserOpenidUnlink", { body: { password: "correct horse battery staple" } });
   */
  postUserOpenidUnlink: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    message: string;
  };
  /**
   * Change one's own password; takes the present one, and ends all sessions and tokens.
   *
   * `POST /user/password`, permission: none.
   *
   * @example
   * await client.call("postUserPassword", {
   *   body: {
   *     password: "correct horse battery staple",
   *     newpassword: "another long pass phrase",
   *   },
   * });
   */
  postUserPassword: {
    request: {
      body: {
        /** The present one. 1 to 4096 characters. */
        password: string;
        /** The new password. 1 to 4096 characters. */
        newpassword: string;
      };
    };
    message: string;
  };
  /**
   * Whether one's own sign-in takes a one-time password.
   *
   * `GET /user/secondfactor`, permission: none.
   *
   * @example
   * await client.call("getUserSecondfactor");
   */
  getUserSecondfactor: {
    request: Record<string, never>;
    message: {
      /** True: signing in takes a second factor. */
      active: boolean;
      /** How many are left. */
      recoverycodes: number;
    };
  };
  /**
   * Begin a second factor: the secret for an authenticator, told once, without effect until confirmed.
   *
   * `POST /user/secondfactor`, permission: none.
   *
   * @example
   * await client.call("postUserSecondfactor", { body: { password: "correct horse battery staple" } });
   */
  postUserSecondfactor: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    message: {
      /** otpauth://totp/…, for a QR code; told once. */
      uri: string;
      /** The same secret in base32, to be typed. */
      secret: string;
    };
  };
  /**
   * Turn one's second factor on with a first code; answers recovery codes, told once.
   *
   * `POST /user/secondfactor/confirm`, permission: none.
   *
   * @example
   * await client.call("postUserSecondfactorConfirm", { body: { code: "492039" } });
   */
  postUserSecondfactorConfirm: {
    request: {
      body: {
        /** One-time password that the authenticator shows. 1 to 64 characters. */
        code: string;
      };
    };
    message: string[];
  };
  /**
   * Sign in by password alone again; takes the password.
   *
   * `POST /user/secondfactor/remove`, permission: none.
   *
   * @example
   * await client.call("postUserSecondfactorRemove", { body: { password: "correct horse battery staple" } });
   */
  postUserSecondfactorRemove: {
    request: {
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    message: string;
  };
  /**
   * One's own open sessions.
   *
   * `GET /user/sessions`, permission: none.
   *
   * @example
   * await client.call("getUserSessions");
   */
  getUserSessions: {
    request: Record<string, never>;
    message: {
      /** Names the session; it does not sign in. */
      id: string;
      /** milliseconds since 1970. */
      createdMs: number;
      /** Address it was made from. */
      remote: string;
      /** This call came by it. */
      current: boolean;
    }[];
  };
  /**
   * End one of one's own sessions; takes the password.
   *
   * `DELETE /user/sessions/{id}`, permission: none.
   *
   * @example
   * await client.call("deleteUserSessionsById", {
   *   path: { id: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
   *   body: { password: "correct horse battery staple" },
   * });
   */
  deleteUserSessionsById: {
    request: {
      path: {
        /** Id of the session, as the list of sessions has it. */
        id: string;
      };
      body: {
        /** The caller's present password. 1 to 4096 characters. */
        password: string;
      };
    };
    message: string;
  };
  /**
   * Set one's own start page; for any signed-in user.
   *
   * `POST /user/settings/home`, permission: none.
   *
   * @example
   * await client.call("postUserSettingsHome", { body: { home: "/static/start.html" } });
   */
  postUserSettingsHome: {
    request: {
      body?: {
        /** Path of a page of this site; empty or absent: none of one's own. At most 1000 characters. */
        home?: string;
      };
    };
    message: string;
  };
  /**
   * Signs in a program; answers the session id and sets it as cookie.
   *
   * `GET /user/signin`, permission: none.
   *
   * @example
   * await client.call("getUserSignin", {
   *   query: { company: "matrix", username: "ana", password: "correct horse battery staple" },
   * });
   */
  getUserSignin: {
    request: {
      query: {
        /** Name of the tenant. Absent: the installation's only one. At most 48 characters. */
        company?: string;
        /** Name of the user. 1 to 200 characters. */
        username: string;
        /** Password of the user. 1 to 4096 characters. */
        password: string;
        /** One-time password or recovery code, for a user with a second factor. At most 64 characters. */
        code?: string;
        /** True: a session that outlives the browser. */
        remember?: boolean;
      };
    };
    message: string;
  };
  /**
   * Signs in a program; answers the session id and sets it as cookie.
   *
   * `POST /user/signin`, permission: none.
   *
   * @example
   * await client.call("postUserSignin", {
   *   body: { company: "matrix", username: "ana", password: "correct horse battery staple" },
   * });
   */
  postUserSignin: {
    request: {
      body: {
        /** Name of the tenant. Absent: the installation's only one. At most 48 characters. */
        company?: string;
        /** Name of the user. 1 to 200 characters. */
        username: string;
        /** Password of the user. 1 to 4096 characters. */
        password: string;
        /** One-time password or recovery code, for a user with a second factor. At most 64 characters. */
        code?: string;
        /** True: a session that outlives the browser. */
        remember?: boolean;
      };
    };
    message: string;
  };
  /**
   * One's own tokens, without what signs in.
   *
   * `GET /user/tokens`, permission: none.
   *
   * @example
   * await client.call("getUserTokens");
   */
  getUserTokens: {
    request: Record<string, never>;
    message: {
      /** Names the token; it does not sign in. */
      id: string;
      /** Name of the token. */
      name: string;
      /** Grants of the token. */
      scopes: string[];
      /** milliseconds since 1970. */
      createdMs: number;
      /** milliseconds since 1970. */
      expiresMs: number;
      /** Address it was made from. */
      remote: string;
    }[];
  };
  /**
   * Make a token for a program; answers it once.
   *
   * `POST /user/tokens`, permission: none.
   *
   * @example
   * await client.call("postUserTokens", { body: { name: "backup", scopes: ["objects:read"], days: 30 } });
   */
  postUserTokens: {
    request: {
      body: {
        /** Name of the token, for people. 1 to 200 characters. */
        name: string;
        /** Grants such as hosts:read, hosts:* or *:read, each within those of its maker. 1 to 64 items. */
        scopes: readonly string[];
        /**
         * days that it holds. 1 to 366.
         * @default 90
         */
        days?: number;
      };
    };
    message: string;
  };
  /**
   * Revoke one of one's own tokens.
   *
   * `DELETE /user/tokens/{id}`, permission: none.
   *
   * @example
   * await client.call("deleteUserTokensById", {
   *   path: { id: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
   * });
   */
  deleteUserTokensById: {
    request: {
      path: {
        /** Id of one of the caller's own tokens, as their list has it. */
        id: string;
      };
    };
    message: string;
  };
  /**
   * Whether a password is acceptable: an empty message, or why it is not.
   *
   * `POST /user/vali_password`, permission: none.
   *
   * @example
   * await client.call("postUserValiPassword", { body: "correct horse battery staple" });
   */
  postUserValiPassword: {
    request: {
      /** The password. */
      body?: Content;
    };
    message: string;
  };
  /**
   * Whether the controller runs.
   *
   * `GET /healthz`, permission: none.
   *
   * @example
   * await client.call("getHealthz");
   */
  getHealthz: {
    request: Record<string, never>;
    message: {
      /** Always ok. */
      status: "ok";
    };
  };
  /**
   * Whether the controller can work: its stores answer.
   *
   * `GET /readyz`, permission: none.
   *
   * @example
   * await client.call("getReadyz");
   */
  getReadyz: {
    request: Record<string, never>;
    message: {
      /** Always ok. */
      status: "ok";
      /** Lost nodes; absent: none. */
      lost?: string[];
      /** What waits for an operator; absent: nothing. */
      warnings?: string[];
      /** Stores with damaged rows; absent: none. */
      damaged?: Record<string, unknown>[];
    };
  };
  /**
   * Figures for Prometheus, for the addresses of the setting metrics_readers.
   *
   * `GET /metrics`, permission: none.
   *
   * @example
   * const { body } = await client.download("getMetrics");
   */
  getMetrics: {
    request: Record<string, never>;
    content: true;
  };
  /**
   * This document.
   *
   * `GET /openapi.json`, permission: none.
   *
   * @example
   * await client.call("getOpenapiJson");
   */
  getOpenapiJson: {
    request: Record<string, never>;
    message: Record<string, unknown>;
  };
}

/** Every WebSocket of the interface by its path. */
export interface Sockets {
  /**
   * Follows what a rule has to say, from a position on, as JSON text frames.
   *
   * Permission: consolelog:read.
   */
  "/consolelog/rule/follow": {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    frame: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Follows what a script has to say, from a position on, as JSON text frames.
   *
   * Permission: consolelog:read.
   */
  "/consolelog/serverjs/follow": {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    frame: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Follows what a trigger has to say, from a position on, as JSON text frames.
   *
   * Permission: consolelog:read.
   */
  "/consolelog/trigger/follow": {
    request: {
      query: {
        /** Configuration key of a rule, path of a script, `<class>#<trigger>`. 1 to 1024 characters. */
        name: string;
        /** Numbers 0 to 6 or English names; all when absent. */
        level?: readonly string[];
        /** Numbers 0 to 6 or English names; all when absent. */
        levels?: readonly string[];
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        mintime?: number;
        /** Milliseconds since 1970; belongs to the range. At least 0. */
        maxtime?: number;
        /** As an earlier read with the same name, levels and times answered it. */
        position?: string;
      };
    };
    frame: {
      /** The oldest first. */
      logs: {
        /** Time of the entry; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        edtime: string;
        /** Begin of the run that wrote the entry; time of the raw record that failed; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z. */
        sttime?: string;
        /** 0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic. */
        level?: number;
        /** Text of the message. */
        msg?: string;
        /** Host with the record that was parsed; absent for messages of scripts. */
        host?: string;
        /** File or policy of the record; absent for messages of scripts. */
        source?: string;
        /** Raw record, as far as it is kept. */
        raw?: string;
        /** Records this stands for. */
        count?: number;
      }[];
      /** The next read goes on behind these. */
      position: string;
    };
  };
  /**
   * Follows the output of a run on one host from a position until the run is over, as JSON text frames.
   *
   * Permission: jobs:read.
   */
  "/job/output/{runid}/{host}": {
    request: {
      path: {
        /** Id of the run. 1 to 100 characters. */
        runid: string;
        /** Host of the run. 1 to 255 characters. */
        host: string;
      };
      query?: {
        /** bytes of the output that the reader has. At least 0. */
        from?: number;
        /** ends before this byte, without waiting for the run. At least 0. */
        to?: number;
        /** begins so many bytes before the end of what is there, not before from. At least 0. */
        tail?: number;
        /** begins so many lines before the end of what is there, at most 1048576 bytes before it. At least 0. */
        lines?: number;
      };
    };
    frame: {
      /** Position of the first byte in the output. */
      from?: number;
      /** Position behind the last byte. */
      to?: number;
      /** base64. */
      data?: string;
      /** End of the run; absent before. */
      end?: {
        /** ok, failed, timeout, unreachable, cancelled or expired. */
        state: string;
        /** Exit code of the command; absent if there is none. */
        code?: number;
        /** that ended the command: SIGKILL; absent: none, or its host does not tell. */
        signal?: string;
        /** Reason of a state that is not ok. */
        message: string;
      };
    };
  };
  /**
   * Entries at and below a key, `{ready: true}`, then every change; a key that goes is `{key, deleted: true}`.
   *
   * Permission: config:read.
   */
  "/config/watch": {
    request: {
      query?: {
        /** A key such as /matrix/etc/mail; everything when absent. */
        key?: string;
      };
    };
    frame: {
      /** Key of the entry. */
      key: string;
      /** Counts the changes of the key, deletes among them. */
      version?: number;
      /** Value of the entry; ******** stands for a secret. Absent after a delete, and if a rule hides it. */
      value?: string;
      /** True: the value is sealed and never shown. */
      secret?: boolean;
      /** User who wrote this version. */
      author?: string;
      /** Milliseconds since 1970. */
      changed?: number;
      /** Milliseconds since 1970. */
      expires?: number;
    } | {
      /** Key that is gone. */
      key: string;
      /** The key is gone. */
      deleted: true;
    } | {
      /** All present entries have been sent; later frames are changes. */
      ready: true;
    };
  };
  /**
   * Notifications of a subject as JSON text frames.
   *
   * Permission: notifications:read.
   */
  "/websocket/{subject}": {
    request: {
      path: {
        /** Subject of the notifications. 1 to 500 characters. */
        subject: string;
      };
      query?: {
        /** Only notifications of this source. At most 500 characters. */
        source?: string;
        /** Only notifications with this title. At most 500 characters. */
        title?: string;
      };
    };
    frame: {
      /** Name space of the tenant. */
      keyspace: string;
      /** Part of odp or of a script that sent it, such as objects. */
      source: string;
      /** Subject of the notification. */
      subject: string;
      /** Title of the notification. */
      title: string;
      /** Empty; kept for older clients. */
      reply: string;
      /** The message; a JSON text for changes of data. */
      msg: string;
    };
  };
}
