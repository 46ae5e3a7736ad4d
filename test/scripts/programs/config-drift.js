/* Compares what hosts have with what their role says, and tells only what differs, member by member. */
var request = JSON.parse(decodeURIComponent(INPUT));

function flat(value, prefix, into) {
  into = into || {};
  _.each(value, function (member, name) {
    var path = prefix ? prefix + "." + name : name;
    if (_.isObject(member) && !_.isArray(member)) flat(member, path, into);
    else into[path] = member;
  });
  return into;
}

var roles = {};
_.each(request.roles, function (settings, role) {
  config.set("/matrix/drift/" + role, JSON.stringify(settings), 0);
  roles[role] = flat(JSON.parse(config.get("/matrix/drift/" + role).value));
});

var drift = [];
_.each(request.hosts, function (host) {
  var wanted = roles[host.role];
  if (!wanted) return drift.push(host.name + ": no role " + host.role);
  var found = flat(host.settings);
  _.each(_.union(_.keys(wanted), _.keys(found)).sort(), function (path) {
    if (_.isEqual(wanted[path], found[path])) return;
    var is = found.hasOwnProperty(path) ? JSON.stringify(found[path]) : "missing";
    var should = wanted.hasOwnProperty(path) ? JSON.stringify(wanted[path]) : "nothing";
    drift.push(host.name + ": " + path + " is " + is + ", should be " + should);
  });
});
OUTPUT = drift;
