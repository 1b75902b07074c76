/* The cold half of nexthop_jni.c: engines, documents, hosts, texts, and the table that binds it all. */

/* kind, dialect, name, text of each; the caller frees `*out`. */
static int documents_of(JNIEnv *env, const struct in *in, nexthop_document **out, size_t *n) {
  struct reader r = { in->at, in->len };
  size_t count = (size_t)(uint32_t)take32(&r);
  nexthop_document *d = calloc(count ? count : 1, sizeof *d);
  if (!d) return out_of_memory(env), 0;
  for (size_t i = 0; i < count; i++) {
    d[i].struct_size = sizeof *d;
    d[i].kind = take8(&r);
    d[i].dialect = take8(&r);
    d[i].name = take_str(&r);
    d[i].text = take_str(&r);
  }
  *out = d;
  *n = count;
  return 1;
}

static jint engine_new(JNIEnv *env, jclass c, jint workers, jlong seed, jlong lease, jlong events, jint clock,
                       jlongArray draws, jbyteArray packed_documents, jlongArray out) {
  (void)c;
  struct in in;
  nexthop_document *documents;
  size_t n;
  nexthop_options o = { .struct_size = sizeof o };
  o.workers = (uint32_t)workers;
  o.seed = (uint64_t)seed;
  o.lease = (uint64_t)lease;
  o.events = (uint64_t)events;
  o.clock = (uint8_t)clock;
  if (!open_in(env, packed_documents, NULL, 0, &in)) return NO_MEMORY;
  if (!documents_of(env, &in, &documents, &n)) { close_in(&in); return NO_MEMORY; }
  jlong *words = draws ? (*env)->GetLongArrayElements(env, draws, NULL) : NULL;
  if (words) {
    o.draws = (const uint64_t *)words;
    o.n_draws = (size_t)(*env)->GetArrayLength(env, draws);
  }
  nexthop_engine engine = { 0 };
  nexthop_status rc = draws && !words ? NO_MEMORY : nexthop_engine_new(&o, documents, n, &engine);
  if (words) (*env)->ReleaseLongArrayElements(env, draws, words, JNI_ABORT);
  free(documents);
  close_in(&in);
  jlong id = (jlong)engine.id;
  if (!rc) (*env)->SetLongArrayRegion(env, out, 0, 1, &id);
  return rc;
}

static jint engine_free(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  return nexthop_engine_free(ENGINE(engine));
}

static jint update(JNIEnv *env, jclass c, jlong engine, jbyteArray packed_documents) {
  (void)c;
  struct in in;
  nexthop_document *documents;
  size_t n;
  uint64_t epoch = 0;
  if (!open_in(env, packed_documents, NULL, 0, &in)) return NO_MEMORY;
  if (!documents_of(env, &in, &documents, &n)) { close_in(&in); return NO_MEMORY; }
  nexthop_status rc = nexthop_update(ENGINE(engine), documents, n, &epoch);
  free(documents);
  close_in(&in);
  return rc;
}

static jint reload(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  uint32_t swapped = 0;
  nexthop_status rc = nexthop_reload(ENGINE(engine), &swapped, NULL);
  return rc ? rc : (jint)swapped;
}

static jint apply(JNIEnv *env, jclass c, jlong engine, jbyteArray cluster, jbyteArray packed_ops, jlongArray out) {
  (void)c;
  char stack[STACK];
  struct in in, name;
  uint64_t epoch = 0;
  if (!open_in(env, packed_ops, NULL, 0, &in)) return NO_MEMORY;
  if (!open_in(env, cluster, stack, sizeof stack, &name)) { close_in(&in); return NO_MEMORY; }
  struct reader r = { in.at, in.len };
  size_t n = (size_t)(uint32_t)take32(&r);
  nexthop_host_op *ops = calloc(n ? n : 1, sizeof *ops);
  nexthop_status rc = NO_MEMORY;
  if (ops) {
    for (size_t i = 0; i < n; i++) {
      ops[i].struct_size = sizeof *ops;
      ops[i].op = take8(&r);
      ops[i].health = take8(&r);
      ops[i].bits = (uint32_t)take32(&r);
      ops[i].weight = (uint32_t)take32(&r);
      ops[i].priority = (uint16_t)take32(&r);
      ops[i].address = take_str(&r);
      ops[i].hostname = take_str(&r);
      ops[i].region = take_str(&r);
      ops[i].zone = take_str(&r);
      ops[i].sub_zone = take_str(&r);
      ops[i].metadata = take_str(&r);
    }
    rc = nexthop_apply(ENGINE(engine), str_of(&name), ops, n, &epoch);
    free(ops);
  } else {
    out_of_memory(env);
  }
  close_in(&in);
  close_in(&name);
  jlong word = (jlong)epoch;
  if (!rc) (*env)->SetLongArrayRegion(env, out, 0, 1, &word);
  return rc;
}

static jlong resolve(JNIEnv *env, jclass c, jlong engine, jbyteArray name) {
  (void)c;
  char stack[STACK];
  struct in in;
  uint32_t target = 0;
  if (!open_in(env, name, stack, sizeof stack, &in)) return NO_MEMORY;
  nexthop_status rc = nexthop_resolve(ENGINE(engine), str_of(&in), &target);
  close_in(&in);
  return rc ? rc : (jlong)target;
}

static jbyteArray text(JNIEnv *env, jclass c, jlong engine, jint what, jbyteArray arg) {
  (void)c;
  char small[STACK];
  struct in in;
  if (!open_in(env, arg, small, sizeof small, &in)) { last_status = NO_MEMORY; return NULL; }
  WITH_ROOM(env, result, nexthop_text(ENGINE(engine), (uint32_t)what, str_of(&in), buf, cap, &len));
  close_in(&in);
  if (!rc) result = bytes(env, buf, len);
  free(owned_);
  return result;
}

static jbyteArray poll_event(JNIEnv *env, jclass c, jlong engine) {
  (void)c;
  WITH_ROOM(env, result, nexthop_poll_event(ENGINE(engine), buf, cap, &len));
  if (!rc) result = bytes(env, buf, len);
  free(owned_);
  return result;
}

static jbyteArray poll_check(JNIEnv *env, jclass c, jlong engine) {
  (void)c;
  nexthop_check k = { .struct_size = sizeof k };
  WITH_ROOM(env, result, nexthop_poll_check(ENGINE(engine), NEXTHOP_NOW, &k, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put64(&o, k.id);
    put32(&o, k.protocol);
    put32(&o, k.bits);
    put32(&o, k.want);
    put64(&o, k.timeout);
    put32(&o, k.host);
    put32(&o, k.host_version);
    put64(&o, k.body_limit);
    put_str(&o, k.method);
    put_str(&o, k.path);
    put_str(&o, k.authority);
    put_str(&o, k.send);
    put_str(&o, k.address);
    put_str(&o, k.headers);
    put_str(&o, k.cluster);
    put_str(&o, k.name);
    put_str(&o, k.extension);
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jlong checks_deadline(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  return (jlong)nexthop_checks_deadline(ENGINE(engine), NEXTHOP_NOW);
}

static jint check_result(JNIEnv *env, jclass c, jlong engine, jlong check, jint result, jint status, jint failure,
                         jbyteArray headers, jbyteArray body) {
  (void)c;
  char stack[STACK], small[STACK];
  struct in block, content;
  if (!open_in(env, headers, stack, sizeof stack, &block)) return NO_MEMORY;
  if (!open_in(env, body, small, sizeof small, &content)) { close_in(&block); return NO_MEMORY; }
  nexthop_outcome o = { .struct_size = sizeof o };
  o.status = (uint16_t)status;
  o.failure = (uint8_t)failure;
  o.grpc_status = -1;
  o.headers = str_of(&block);
  nexthop_status rc = nexthop_check_result(ENGINE(engine), (uint64_t)check, (uint32_t)result, &o, str_of(&content), NEXTHOP_NOW);
  close_in(&block);
  close_in(&content);
  return rc;
}

static jbyteArray extra_headers(JNIEnv *env, jclass c, jlong id) {
  (void)c;
  WITH_ROOM(env, result, nexthop_extra_headers((uint64_t)id, buf, cap, &len));
  if (!rc) result = bytes(env, buf, len);
  free(owned_);
  return result;
}

static jbyteArray last_error(JNIEnv *env, jclass c) {
  (void)c;
  WITH_ROOM(env, result, nexthop_last_error(buf, cap, &len));
  if (!rc) result = bytes(env, buf, len);
  free(owned_);
  return result;
}

static jbyteArray last_error_parts(JNIEnv *env, jclass c) {
  (void)c;
  nexthop_error_parts e = { .struct_size = sizeof e };
  WITH_ROOM(env, result, nexthop_last_error_parts(&e, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put32(&o, e.line);
    put32(&o, e.column);
    put_str(&o, e.file);
    put_str(&o, e.path);
    put_str(&o, e.found);
    put_str(&o, e.allowed);
    put_str(&o, e.nearest);
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jbyteArray host(JNIEnv *env, jclass c, jlong engine, jint slot, jint version) {
  (void)c;
  nexthop_host_info h = { .struct_size = sizeof h };
  WITH_ROOM(env, result, nexthop_host(ENGINE(engine), (uint32_t)slot, (uint32_t)version, &h, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put32(&o, h.version);
    put32(&o, h.weight);
    put32(&o, h.bits);
    put32(&o, h.port);
    put32(&o, h.priority);
    put64(&o, h.connect_timeout);
    put_str(&o, h.address);
    put_str(&o, h.hostname);
    put_str(&o, h.cluster_name);
    put_str(&o, h.region);
    put_str(&o, h.zone);
    put_str(&o, h.sub_zone);
    put_str(&o, h.metadata);
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jbyteArray want(JNIEnv *env, jclass c, jlong engine, jint set) {
  (void)c;
  uint32_t number = 0;
  WITH_ROOM(env, result, nexthop_want(ENGINE(engine), (uint32_t)set, &number, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put32(&o, number);
    put_str(&o, (nexthop_str){ buf, len });
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jbyteArray request_info(JNIEnv *env, jclass c, jlong request) {
  (void)c;
  nexthop_request_facts f = { .struct_size = sizeof f };
  WITH_ROOM(env, result, nexthop_request_info(REQUEST(request), &f, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put64(&o, f.timeout);
    put64(&o, f.idle_timeout);
    put_str(&o, f.cluster);
    put_str(&o, f.route);
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jbyteArray reply(JNIEnv *env, jclass c, jlong request) {
  (void)c;
  nexthop_local_reply l = { .struct_size = sizeof l };
  WITH_ROOM(env, result, nexthop_reply(REQUEST(request), &l, buf, cap, &len));
  if (!rc) {
    struct out o = { 0 };
    put32(&o, l.status);
    put32(&o, l.flags);
    put_str(&o, l.details);
    put_str(&o, l.body);
    put_str(&o, l.headers);
    result = close_out(env, &o);
  }
  free(owned_);
  return result;
}

static jint engine_info(JNIEnv *env, jclass c, jlong engine, jlongArray out) {
  (void)c;
  nexthop_engine_facts f = { .struct_size = sizeof f };
  nexthop_status rc = nexthop_engine_info(ENGINE(engine), &f);
  if (rc) return rc;
  jlong words[3] = { (jlong)f.epoch, (jlong)f.live_requests, (jlong)f.seed };
  (*env)->SetLongArrayRegion(env, out, 0, 3, words);
  return 0;
}

static jlong poll_deadline(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  return (jlong)nexthop_poll_deadline(ENGINE(engine), NEXTHOP_NOW);
}

static jint maintain(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  uint32_t bits = 0;
  nexthop_status rc = nexthop_maintain(ENGINE(engine), NEXTHOP_NOW, &bits);
  return rc ? rc : (jint)(bits & 0x7fff);
}

static jint advance(JNIEnv *env, jclass c, jlong engine, jlong ns) {
  (void)env; (void)c;
  return nexthop_advance(ENGINE(engine), (uint64_t)ns);
}

static jlong now(JNIEnv *env, jclass c, jlong engine) {
  (void)env; (void)c;
  return (jlong)nexthop_now(ENGINE(engine));
}

static jbyteArray name(JNIEnv *env, jclass c, jint table, jint value) {
  (void)c;
  const char *word = nexthop_name((uint32_t)table, (uint32_t)value);
  return word ? bytes(env, word, strlen(word)) : NULL;
}

static jbyteArray version(JNIEnv *env, jclass c) {
  (void)c;
  return bytes(env, nexthop_version(), strlen(nexthop_version()));
}

static jint abi_version(JNIEnv *env, jclass c) {
  (void)env; (void)c;
  /* What the header said when this was compiled must be what the library inside says. */
  return nexthop_abi_version() == NEXTHOP_ABI ? (jint)NEXTHOP_ABI : -1;
}

static jint get_last_status(JNIEnv *env, jclass c) { (void)env; (void)c; return last_status; }

static jlong address(JNIEnv *env, jclass c, jobject buffer) {
  (void)c;
  return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

/* Java reads decisions at these offsets. */
_Static_assert(sizeof(nexthop_decision) == 72 && offsetof(nexthop_decision, kind) == 4 &&
               offsetof(nexthop_decision, request) == 8 && offsetof(nexthop_decision, attempt) == 16 &&
               offsetof(nexthop_decision, host) == 24 && offsetof(nexthop_decision, number) == 32 &&
               offsetof(nexthop_decision, want_ok) == 36 && offsetof(nexthop_decision, try_timeout) == 40 &&
               offsetof(nexthop_decision, remaining) == 48 && offsetof(nexthop_decision, wait) == 56 &&
               offsetof(nexthop_decision, status) == 64 && offsetof(nexthop_decision, refusal) == 66 &&
               offsetof(nexthop_decision, flags) == 68, "DecisionBuffer.java");

#define BIND(java, signature, function) { (char *)(java), (char *)(signature), (void *)(function) }

static const JNINativeMethod METHODS[] = {
  BIND("nothing", "()V", nothing),
  BIND("pick", "(JIIJ)I", pick),
  BIND("pickKey", "(JII[BJ)I", pick_key),
  BIND("begin", "(J[BJ)I", begin),
  BIND("choose", "(JJ)I", choose),
  BIND("complete", "(JI)J", complete),
  BIND("report", "(IJIIIIJJ[B[B)J", report),
  BIND("end", "(J)J", end),
  BIND("fail", "(JI)J", fail),
  BIND("cancel", "(J)J", cancel),
  BIND("finish", "(JI)J", finish),
  BIND("note", "(JI)I", note),
  BIND("lastFlags", "()I", get_last_flags),
  BIND("pollReady", "(J[J)I", poll_ready),
  BIND("engineNew", "(IJJJI[J[B[J)I", engine_new),
  BIND("engineFree", "(J)I", engine_free),
  BIND("update", "(J[B)I", update),
  BIND("reload", "(J)I", reload),
  BIND("apply", "(J[B[B[J)I", apply),
  BIND("resolve", "(J[B)J", resolve),
  BIND("text", "(JI[B)[B", text),
  BIND("pollEvent", "(J)[B", poll_event),
  BIND("pollCheck", "(J)[B", poll_check),
  BIND("checksDeadline", "(J)J", checks_deadline),
  BIND("checkResult", "(JJIII[B[B)I", check_result),
  BIND("extraHeaders", "(J)[B", extra_headers),
  BIND("lastError", "()[B", last_error),
  BIND("lastErrorParts", "()[B", last_error_parts),
  BIND("host", "(JII)[B", host),
  BIND("want", "(JI)[B", want),
  BIND("requestInfo", "(J)[B", request_info),
  BIND("reply", "(J)[B", reply),
  BIND("engineInfo", "(J[J)I", engine_info),
  BIND("pollDeadline", "(J)J", poll_deadline),
  BIND("maintain", "(J)I", maintain),
  BIND("advance", "(JJ)I", advance),
  BIND("now", "(J)J", now),
  BIND("name", "(II)[B", name),
  BIND("version", "()[B", version),
  BIND("abiVersion", "()I", abi_version),
  BIND("lastStatus", "()I", get_last_status),
  BIND("address", "(Ljava/nio/ByteBuffer;)J", address),
};

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
  (void)reserved;
  JNIEnv *env;
  if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  jclass class = (*env)->FindClass(env, "io/nexthop/Native");
  if (!class) return JNI_ERR;
  if ((*env)->RegisterNatives(env, class, METHODS, sizeof METHODS / sizeof *METHODS)) return JNI_ERR;
  return JNI_VERSION_1_8;
}
