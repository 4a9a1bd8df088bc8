package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// podInProtobuf creates, updates and deletes a pod in protobuf, and returns how the pod in JSON differs, if it does.
func podInProtobuf(jsonConfig, protobufConfig *rest.Config) string {
	ctx := context.Background()
	inJSON := kubernetes.NewForConfigOrDie(jsonConfig).CoreV1().Pods("default")
	inProtobuf := kubernetes.NewForConfigOrDie(protobufConfig).CoreV1().Pods("default")

	created, err := inProtobuf.Create(ctx, pod(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Sprintf("create: %v", err)
	}
	read, err := inJSON.Get(ctx, created.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Sprintf("get: %v", err)
	}
	if !equality.Semantic.DeepEqual(created, read) {
		return fmt.Sprintf("%+v in protobuf, %+v in JSON", created, read)
	}
	if wanted := pod().Spec.Containers[0].Env; !equality.Semantic.DeepEqual(read.Spec.Containers[0].Env, wanted) {
		return fmt.Sprintf("the environment variables differ: %+v", read.Spec.Containers[0].Env)
	}
	read.Labels["changed"] = "yes"
	changed, err := inProtobuf.Update(ctx, read, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Sprintf("update: %v", err)
	}
	if changed.Labels["changed"] != "yes" || changed.Generation != created.Generation {
		return fmt.Sprintf("update: labels %v, generation changed to %d from %d", changed.Labels, changed.Generation, created.Generation)
	}
	stale := "someone-else"
	wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &stale}}
	if err := inProtobuf.Delete(ctx, created.Name, wrong); !apierrors.IsConflict(err) {
		return fmt.Sprintf("delete with a stale resource version: %v", err)
	}
	now := int64(0)
	if err := inProtobuf.Delete(ctx, created.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return fmt.Sprintf("delete: %v", err)
	}
	if _, err := inProtobuf.Get(ctx, created.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Sprintf("get after the delete: %v", err)
	}
	return ""
}

func pod() *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "in-protobuf", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys", Optional: &yes}}},
			},
			Containers: []corev1.Container{{
				Name:  "web",
				Image: "web:1",
				Env: []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "main",
				}}}, {Name: "PLAIN", Value: "text"}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
				},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/live", Port: intstr.FromString("http")},
				}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)},
				}},
			}},
		},
	}
}
