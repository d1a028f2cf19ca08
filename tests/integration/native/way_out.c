/* A native extension with sockets and name lookups of its own, of which Python sees nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <resolv.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in here(int port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static PyObject *way_connect(PyObject *self, PyObject *args) {
    int port;
    if (!PyArg_ParseTuple(args, "i", &port)) return NULL;
    struct sockaddr_in address = here(port);
    int number = socket(AF_INET, SOCK_STREAM, 0);
    int result = number < 0 ? -1 : connect(number, (struct sockaddr *)&address, sizeof address);
    if (number >= 0) close(number);
    return PyLong_FromLong(result);
}

static PyObject *way_lookup(PyObject *self, PyObject *args) {
    int port;
    if (!PyArg_ParseTuple(args, "i", &port)) return NULL;
    struct __res_state state;
    unsigned char answer[512];
    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0) return PyLong_FromLong(-1);
    state.nscount = 1;
    state.nsaddr_list[0] = here(port);
    state.retrans = 1;
    state.retry = 1;
    int result = res_nquery(&state, "orders.example", 1, 1, answer, sizeof answer);
    res_nclose(&state);
    return PyLong_FromLong(result);
}

static PyMethodDef methods[] = {
    {"connect", way_connect, METH_VARARGS, "Connects to a port of 127.0.0.1."},
    {"lookup", way_lookup, METH_VARARGS, "Asks a name server at a port of 127.0.0.1."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "way_out", NULL, -1, methods};
PyMODINIT_FUNC PyInit_way_out(void) { return PyModule_Create(&module); }
